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
	Model  SpeedModel // nil: the job keeps its shape
	// Scaling is needed for the bottleneck only.
	Scaling Scaling

	Elapsed          time.Duration // since the start of the job
	DoneSamples      float64
	RemainingSamples float64
	Pause            time.Duration // of the job at a change of its shape
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

// resizePlan is one decision.
type resizePlan struct {
	view *ResizeView
	now  time.Time
	o    Options
}

// planned is a job that may be resized, with its times by the speed model.
type planned struct {
	*ResizableJob
	steps StepTimes
	// remaining is the time to the end, and requested that from start to end in the requested shape,
	// in seconds.
	remaining, requested float64
}

func newPlanned(j *ResizableJob) *planned {
	steps := j.Model.Steps()
	return &planned{
		ResizableJob: j,
		steps:        steps,
		remaining:    j.RemainingSamples / steps.speed(j.Shape),
		requested:    (j.DoneSamples + j.RemainingSamples) / steps.speed(j.Requested),
	}
}

// proposal is the best move of a job.
type proposal struct {
	Resizing
	score float64 // lower bound of the gain, see resizePlan.rate
	slack float64 // seconds to the deadline that the job does not need
}

// Plan returns the moves for a state of the cluster, and the new record of each job.
func Plan(view *ResizeView, now time.Time, o Options) (moves []Resizing, records map[string]ResizeRecord) {
	p := &resizePlan{view: view, now: now, o: o.withDefaults()}
	records = make(map[string]ResizeRecord, len(view.Jobs))
	var proposals []proposal
	for i := range view.Jobs {
		j := &view.Jobs[i]
		record, found := p.consider(j)
		records[j.ID] = record
		if found != nil {
			proposals = append(proposals, *found)
		}
	}

	slices.SortStableFunc(proposals, func(a, b proposal) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(b.score, a.score),
			cmp.Compare(a.slack, b.slack))
	})
	free := max(0, view.FreeCores)
	for i := range proposals {
		m := &proposals[i].Resizing
		more := m.To.Cores() - m.From.Cores()
		if more > free {
			continue
		}
		free -= max(0, more)
		moves = append(moves, *m)
	}
	p.begin(moves, records)
	return moves, records
}

// order returns which moves are carried out first: those that free cores, then those that need none.
func (p *proposal) order() int {
	return slices.Index([]ResizeRule{RuleUndo, RuleRestore, RuleShrink, RuleExchange, RuleGrow}, p.Rule)
}

// begin records the moves, so that they are judged later.
func (p *resizePlan) begin(moves []Resizing, records map[string]ResizeRecord) {
	if len(moves) == 0 {
		return
	}
	byJob := make(map[string]*Resizing, len(moves))
	for i := range moves {
		byJob[moves[i].Job] = &moves[i]
	}
	for i := range p.view.Jobs {
		j := &p.view.Jobs[i]
		m := byJob[j.ID]
		if m == nil || m.Rule == RuleUndo {
			continue
		}
		trial := &ResizeTrial{
			From:        m.From,
			StepSeconds: meanOf(j.Window).StepSeconds,
			Reports:     len(j.Window),
			Gain:        math.Log(m.SpeedRatio),
			IsShrink:    m.Rule == RuleShrink,
		}
		if trial.IsShrink {
			trial.Gain -= math.Log(float64(m.To.Cores()) / float64(m.From.Cores()))
		}
		record := records[j.ID]
		record.Trial = trial
		records[j.ID] = record
	}
}

// consider judges the previous move of a job and returns its best next move, if there is one.
func (p *resizePlan) consider(job *ResizableJob) (ResizeRecord, *proposal) {
	record := job.Record
	record.Barred = slices.DeleteFunc(slices.Clone(record.Barred), func(b BarredShape) bool {
		return !b.Until.After(p.now)
	})
	if job.Model == nil || !job.Shape.IsValid(job.Facts.Architecture) || !IsStable(job.Window, p.o) ||
		job.Window[0].Shape != job.Shape || !(job.RemainingSamples > 0) {
		return record, nil
	}
	j, mean := newPlanned(job), meanOf(job.Window)
	bottleneck := FindBottleneck(j.Window, j.Scaling, p.o)
	undo := p.judge(j, &record, mean.StepSeconds)
	if record.RestUntil.After(p.now) && undo == nil {
		return record, nil
	}

	best := undo
	if best == nil {
		best = p.best(j, &record, bottleneck.Shapes(&mean, p.o))
	}
	if best != nil {
		best.Job, best.From, best.Bottleneck = j.ID, j.Shape, bottleneck
		best.slack = math.Inf(1)
		if !j.Deadline.IsZero() {
			best.slack = j.Deadline.Sub(p.now).Seconds() - j.remaining
		}
	}
	return record, best
}

// remainingSeconds returns the time to the end of a job whose speed changes by a logarithm.
func (j *planned) remainingSeconds(gain float64) float64 {
	return j.remaining * math.Exp(-gain)
}

// best returns the best allowed move of a job.
func (p *resizePlan) best(j *planned, record *ResizeRecord, more []Shape) *proposal {
	candidates := append(j.Shape.Neighbours(j.Facts.Architecture, p.o.Largest), more...)
	candidates = append(candidates, p.outright(j)...)
	candidates = append(candidates, j.Requested)
	var best proposal
	hasBest := false
	for _, to := range candidates {
		isBarred := slices.ContainsFunc(record.Barred, func(b BarredShape) bool { return b.Shape == to })
		if isBarred || to == j.Shape || !to.IsValid(j.Facts.Architecture) || !to.isWithin(p.o.Largest) {
			continue
		}
		if found, ok := p.rate(j, to); ok && (!hasBest || found.score > best.score) {
			best, hasBest = found, true
		}
	}
	if !hasBest {
		return nil
	}
	return &best
}

// outright returns the best shapes by the model, once it is trusted.
func (p *resizePlan) outright(j *planned) (found []Shape) {
	if !j.Model.IsTrusted(j.Shape, j.Shape) {
		return nil
	}
	fastest := goal{cores: j.Shape.Cores(), largest: p.o.Largest}
	goals := []goal{fastest}
	if p.view.QueuedJobs > 0 {
		cheapest := fastest
		cheapest.perCore, cheapest.minSpeed = true, p.minSpeed(j)
		goals = append(goals, cheapest)
	} else {
		goals[0].cores += max(0, p.view.FreeCores) / len(p.view.Jobs)
	}
	for _, g := range goals {
		if s, ok := j.steps.best(g); ok && j.Model.IsTrusted(j.Shape, s) {
			found = append(found, s)
		}
	}
	return found
}

// minSpeed returns the lowest speed, in samples per second, with which a job ends in time after a
// move: see endsInTime. It is infinite if no speed suffices.
func (p *resizePlan) minSpeed(j *planned) float64 {
	left := j.requested - j.Elapsed.Seconds()
	if !j.Deadline.IsZero() {
		left = min(left, j.Deadline.Sub(p.now).Seconds())
	}
	if left -= j.Pause.Seconds(); left > 0 {
		return j.RemainingSamples / left
	}
	return math.Inf(1)
}

// rate returns the move to a shape, and whether the rules allow it. While a queue waits, its score is the
// logarithm of the saved core-seconds, otherwise that of the speed per additional core.
func (p *resizePlan) rate(j *planned, to Shape) (m proposal, ok bool) {
	more, isQueue := to.Cores()-j.Shape.Cores(), p.view.QueuedJobs > 0
	isRestore := isQueue && more > 0 && p.isRestorable(j, to)
	if more > p.view.FreeCores || isQueue && more > 0 && !isRestore {
		return m, false
	}
	mean, standardError := j.Model.Gain(j.Shape, to)
	lower := mean - p.o.BoundFactor*standardError
	if math.IsNaN(lower) {
		return m, false
	}
	growth := float64(more) / float64(j.Shape.Cores())
	saved := lower - math.Log1p(growth) // core-seconds
	m.To, m.SpeedRatio, m.LowerSpeedRatio = to, math.Exp(mean), math.Exp(lower)
	switch {
	case isRestore:
		m.Rule, m.score = RuleRestore, lower
	case more > 0:
		m.Rule, m.score = RuleGrow, lower/float64(more)
		if math.Expm1(lower) < p.o.GrowthGainRatio*growth {
			return m, false
		}
	case isQueue && more < 0 && p.endsInTime(j, lower) && p.paysBack(j, saved):
		m.Rule, m.score = RuleShrink, saved
		return m, true
	case math.Expm1(lower) >= p.o.ExchangeGainRatio:
		if m.Rule, m.score = RuleExchange, lower; isQueue {
			m.score = saved
		}
	default:
		return m, false
	}
	return m, p.paysBack(j, lower)
}

// paysBack reports whether a gain saves enough of the remaining time, or of the core-seconds.
func (p *resizePlan) paysBack(j *planned, gain float64) bool {
	return j.remaining-j.remainingSeconds(gain) >= p.o.CostFactor*j.Pause.Seconds() && gain > 0
}

// endsInTime reports whether a job that changes its speed by a logarithm still ends by its deadline,
// and no later than it would have with the requested shape.
func (p *resizePlan) endsInTime(j *planned, gain float64) bool {
	left := j.Pause.Seconds() + j.remainingSeconds(gain)
	return j.Elapsed.Seconds()+left <= j.requested && p.keepsDeadline(j, gain)
}

// keepsDeadline reports whether a job that changes its speed by a logarithm still ends by its deadline.
func (p *resizePlan) keepsDeadline(j *planned, gain float64) bool {
	left := j.Pause.Seconds() + j.remainingSeconds(gain)
	return j.Deadline.IsZero() || j.Deadline.Sub(p.now).Seconds() >= left
}

// isRestorable reports whether a job that would end later than with the requested shape may have a
// shape: it may take back the cores that it gave up, although others wait for them.
func (p *resizePlan) isRestorable(j *planned, to Shape) bool {
	ends := j.Elapsed.Seconds() + j.remaining
	return to.Cores() <= j.Requested.Cores() && ends > j.requested
}
