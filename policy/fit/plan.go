// Package fit resizes distributed trainings: it fits their workers, cores and parameter servers to
// what limits their speed.
//
// The idea is that of NEARCHUS (Tariq et al., NOMS 2024): watch a job, find its bottleneck, change
// its resources. The rule is Courier's own. A model of the step time, which is learned from the
// job's own steps, prices every neighbouring shape, and the best lower bound of the gain wins. The
// bottleneck only adds candidates and explains a move.
//
// Plan is a pure function. The caller keeps the ResizeRecord of each job between two calls, collects
// step reports since the last change of the job's shape, and carries out the moves. Plan returns at
// most one move per job and window, never a shape with less than one worker or core, and never
// takes more cores than are free. It promises nothing about the order of calls: a job without a
// stable window is left alone.
package fit

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ResizeView is the state of a cluster at the time of a decision.
type ResizeView struct {
	FreeCores  int
	QueuedJobs int
	Jobs       []ResizableJob
}

// ResizableJob is a running job that can change its shape.
type ResizableJob struct {
	ID    string
	Facts Facts
	// Requested is the shape that the owner asked for. A job that gives up cores still ends no later
	// than it would have with this shape.
	Requested Shape
	Shape     Shape
	// Window has the last reports since the latest change of the shape.
	Window []StepReport
	Model  *SpeedModel // nil: the job keeps its shape
	// Scaling is needed for the bottleneck only.
	Scaling Scaling

	Elapsed          time.Duration // since the start of the job
	DoneSamples      float64
	RemainingSamples float64       // if all of them are trained with Facts.SamplesPerWorker
	Pause            time.Duration // of the job at a change of its shape, but not of its batch size alone
	Deadline         time.Time     // zero: none
	Record           ResizeRecord  // from the previous decision
}

// ResizeRecord is what a policy has to remember about a job between two decisions.
type ResizeRecord struct {
	Trial     *ResizeTrial // the latest move, until it is judged
	Fruitless int          // consecutive moves without the predicted gain
	RestUntil time.Time
	Barred    []BarredShape
}

// BarredShape is a shape that a job must not have again for some time.
type BarredShape struct {
	Shape Shape
	Until time.Time
}

// ResizeTrial is a move that was not judged yet.
type ResizeTrial struct {
	From Shape
	// StepSeconds and Reports are those of the last window in the former shape.
	StepSeconds float64
	Reports     int
	// Gain is the predicted logarithm of the relative speed, plus that of the cores that a
	// shrinking job needs less.
	Gain     float64
	IsShrink bool
}

// ResizeRule is why a job is resized.
type ResizeRule string

// Rules.
const (
	RuleShrink   ResizeRule = "shrink"   // a queue waits, and the job ends in time with fewer cores
	RuleExchange ResizeRule = "exchange" // faster with the same cores or fewer
	RuleGrow     ResizeRule = "grow"     // cores are free, and nobody waits for them
	RuleUndo     ResizeRule = "undo"     // the previous move brought less than half of its gain
	RuleRestore  ResizeRule = "restore"  // the job gave up cores and would now end too late
)

// Resizing is a change of the shape of a job.
type Resizing struct {
	Job        string
	From, To   Shape
	Rule       ResizeRule
	Bottleneck Bottleneck
	// SpeedRatio is the predicted speed divided by the present one; LowerSpeedRatio its lower bound.
	SpeedRatio      float64
	LowerSpeedRatio float64
}

type resizePlan struct {
	view    *ResizeView
	now     time.Time
	largest Shape
}

// proposal is the best move of a job.
type proposal struct {
	Resizing
	index int     // of the job in the view
	score float64 // lower bound of the gain, see resizePlan.rate
	slack float64 // seconds to the deadline that the job does not need
}

// Plan returns the moves for a state of the cluster, and the new record of each job. No number of a shape
// exceeds that of the largest one.
func Plan(
	view *ResizeView, now time.Time, largest Shape,
) (moves []Resizing, records map[string]ResizeRecord) {
	p := &resizePlan{view: view, now: now, largest: largest}
	records = make(map[string]ResizeRecord, len(view.Jobs))
	var proposals []*proposal
	for i := range view.Jobs {
		j := &view.Jobs[i]
		record, found := p.consider(j)
		if found != nil {
			found.index = i
			proposals = append(proposals, found)
		}
		records[j.ID] = record
	}

	slices.SortFunc(proposals, func(a, b *proposal) int {
		return cmp.Or(
			cmp.Compare(slices.Index(ruleOrder, a.Rule), slices.Index(ruleOrder, b.Rule)),
			cmp.Compare(b.score, a.score), cmp.Compare(a.slack, b.slack), cmp.Compare(a.index, b.index),
		)
	})
	free := max(0, view.FreeCores)
	for _, m := range proposals {
		more := m.To.Cores() - m.From.Cores()
		if more > free {
			continue
		}
		free -= max(0, more)
		moves = append(moves, m.Resizing)
		if m.Rule != RuleUndo {
			record := records[m.Job]
			record.Trial = m.trial(&view.Jobs[m.index])
			records[m.Job] = record
		}
	}
	return moves, records
}

// ruleOrder is the order in which moves are carried out: those that free cores, then those that need none.
var ruleOrder = []ResizeRule{RuleUndo, RuleRestore, RuleShrink, RuleExchange, RuleGrow}

// trial returns what a move has to be judged by later.
func (m *Resizing) trial(j *ResizableJob) *ResizeTrial {
	t := &ResizeTrial{
		From:        m.From,
		StepSeconds: meanOf(j.Window).StepSeconds,
		Reports:     len(j.Window),
		Gain:        math.Log(m.SpeedRatio),
		IsShrink:    m.Rule == RuleShrink,
	}
	if t.IsShrink {
		t.Gain -= math.Log(float64(m.To.Cores()) / float64(m.From.Cores()))
	}
	return t
}

// consider judges the previous move of a job and returns its best next move, if there is one.
func (p *resizePlan) consider(job *ResizableJob) (ResizeRecord, *proposal) {
	record := job.Record
	record.Barred = slices.DeleteFunc(slices.Clone(record.Barred), func(b BarredShape) bool {
		return !b.Until.After(p.now)
	})
	isAllowed := job.Facts.allows(&job.Shape) && job.Facts.allows(&job.Requested)
	if job.Model == nil || !isAllowed || !IsStable(job.Window) ||
		job.Window[0].Shape != job.Shape || !(job.RemainingSamples > 0) {
		return record, nil
	}
	j := newPlanned(job, p.now)
	bottleneck := FindBottleneck(j.Window, j.Scaling)
	undo := p.judge(&j, &record)
	if record.RestUntil.After(p.now) && undo == nil {
		return record, nil
	}

	best := undo
	if best == nil {
		best = p.best(&j, record.Barred, bottleneck)
	}
	if best != nil {
		best.Job, best.From, best.Bottleneck = j.ID, j.Shape, bottleneck
		best.slack = j.left - j.remaining
	}
	return record, best
}

func (p *resizePlan) best(j *planned, barred []BarredShape, b Bottleneck) *proposal {
	best := proposal{Resizing: Resizing{To: j.Shape}}
	gains := j.Model.gainsFrom(j.Shape)
	consider := func(to Shape, isDistant bool) {
		if to == j.Shape || !p.isAllowed(j, barred, to) {
			return
		}
		mean, standardError := gains.to(to)
		if isDistant && standardError > trustedErrorRatio {
			return
		}
		ratio := speedRatio{
			mean:  math.Exp(mean),
			lower: math.Exp(mean - BoundFactor*standardError),
			safe:  math.Exp(mean - deadlineFactor*standardError),
		}
		rule, score := p.rate(j, to, &ratio)
		if score > best.score && (rule != RuleShrink || j.surelyEndsInTime(to)) {
			best.To, best.Rule, best.score = to, rule, score
			best.SpeedRatio, best.LowerSpeedRatio = ratio.mean, ratio.lower
		}
	}
	for _, to := range p.outright(j) {
		consider(to, true)
	}
	for _, to := range p.nearby(j, b) {
		consider(to, false)
	}
	if best.score == 0 {
		return nil
	}
	return &best
}

// nearby returns the requested shape, the neighbours, those that a bottleneck suggests, and other batch
// sizes.
func (p *resizePlan) nearby(j *planned, b Bottleneck) []Shape {
	return slices.Concat(j.Facts.withBatches(j.Shape), b.Shapes(&j.mean), []Shape{j.Requested},
		j.Shape.Neighbours(j.Facts.Architecture, p.largest))
}

// isAllowed reports whether a job may have a shape: it is valid and not barred, its cores are free, and
// while a queue waits, a job only grows to be restored.
func (p *resizePlan) isAllowed(j *planned, barred []BarredShape, to Shape) bool {
	if !j.Facts.allows(&to) || !to.isWithin(&p.largest) {
		return false
	}
	more := to.Cores() - j.Shape.Cores()
	if more > 0 && (more > p.view.FreeCores || p.view.QueuedJobs > 0 && !j.isRestorable(to)) {
		return false
	}
	isBarred := slices.ContainsFunc(barred, func(b BarredShape) bool { return b.Shape == to })
	return !isBarred && p.fitsMemory(j, to)
}

// fitsMemory reports whether a batch fits the memory of the workers. At most, all of their memory
// grows with the batch.
func (p *resizePlan) fitsMemory(j *planned, to Shape) bool {
	if to.Samples == j.Shape.Samples {
		return true
	}
	growth := j.Facts.samples(&to) / j.Facts.samples(&j.Shape)
	return growth <= 1 || growth*j.mean.MemoryRatio < memoryThreshold
}

// outright returns the best shapes by the model, if it knows enough shapes.
func (p *resizePlan) outright(j *planned) (found []Shape) {
	if j.Model.shapes < trustedShapes {
		return nil
	}
	cores := j.Shape.Cores()
	if p.view.QueuedJobs == 0 {
		cores += max(0, p.view.FreeCores) / len(p.view.Jobs)
	}
	front := j.Model.front.upTo(cores)
	if s, ok := front.fastest(); ok {
		found = append(found, s)
	}
	if p.view.QueuedJobs > 0 {
		if s, ok := front.cheapest(j.minSpeed()); ok {
			found = append(found, s)
		}
	}
	return found
}

// speedRatio is the speed of a shape, divided by the present one. BoundFactor defines the lower bound,
// and deadlineFactor the safe one.
type speedRatio struct{ mean, lower, safe float64 }

// rate returns the rule that allows a job to have a shape, and a score above 0. While a queue waits,
// the score is the ratio of the core-seconds before and after the move, minus one; otherwise the
// logarithm of the ratio of the speed, per additional core. It is 0 if no rule allows the shape.
// Higher ratios never have a lower score.
func (p *resizePlan) rate(j *planned, to Shape, ratio *speedRatio) (r ResizeRule, score float64) {
	cores := j.Shape.Cores()
	more, isQueue := to.Cores()-cores, p.view.QueuedJobs > 0
	growth := float64(more) / float64(cores)
	pause := j.pauseBefore(to)
	lower := ratio.lower
	saving := lower / (1 + growth) // ratio of core-seconds
	keepsDeadline := j.keepsDeadline(ratio.safe, pause)
	isShrink := isQueue && more < 0 && keepsDeadline && j.endsInTime(ratio.mean, pause)
	switch {
	case isShrink && j.paysBack(saving, pause):
		return RuleShrink, saving - 1
	case !j.paysBack(lower, pause) || ratio.safe < 1 && !keepsDeadline:
		return r, 0
	case isQueue && more > 0:
		return RuleRestore, lower - 1
	case more > 0 && lower-1 >= GrowthGainRatio*growth:
		return RuleGrow, math.Log(lower) / float64(more)
	case more > 0 || lower-1 < exchangeGainRatio:
		return r, 0
	case isQueue:
		return RuleExchange, saving - 1
	}
	return RuleExchange, math.Log(lower)
}
