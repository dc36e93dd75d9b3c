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
	for i := range p.view.Jobs {
		j := &p.view.Jobs[i]
		at := slices.IndexFunc(moves, func(m Resizing) bool { return m.Job == j.ID })
		if at < 0 || moves[at].Rule == RuleUndo {
			continue
		}
		m := &moves[at]
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
func (p *resizePlan) consider(j *ResizableJob) (ResizeRecord, *proposal) {
	record := j.Record
	record.Barred = slices.DeleteFunc(slices.Clone(record.Barred), func(b BarredShape) bool {
		return !b.Until.After(p.now)
	})
	if j.Model == nil || !j.Shape.IsValid(j.Facts.Architecture) || !IsStable(j.Window, p.o) ||
		j.Window[0].Shape != j.Shape || !(j.RemainingSamples > 0) {
		return record, nil
	}
	mean := meanOf(j.Window)
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
			best.slack = j.Deadline.Sub(p.now).Seconds() - j.remainingSeconds(0)
		}
	}
	return record, best
}

// remainingSeconds returns the time to the end of a job whose speed changes by a logarithm.
func (j *ResizableJob) remainingSeconds(gain float64) float64 {
	return j.RemainingSamples / j.Facts.Speed(j.Shape, j.Model.StepSeconds(j.Shape)) * math.Exp(-gain)
}

// best returns the best allowed move of a job.
func (p *resizePlan) best(j *ResizableJob, record *ResizeRecord, more []Shape) *proposal {
	candidates := append(j.Shape.Neighbours(j.Facts.Architecture, p.o.Largest), more...)
	candidates = append(candidates, p.outright(j)...)
	candidates = append(candidates, j.Requested)
	var best *proposal
	for _, to := range candidates {
		isBarred := slices.ContainsFunc(record.Barred, func(b BarredShape) bool { return b.Shape == to })
		if isBarred || to == j.Shape || !to.IsValid(j.Facts.Architecture) || !to.isWithin(p.o.Largest) {
			continue
		}
		if found := p.rate(j, to); found != nil && (best == nil || found.score > best.score) {
			best = found
		}
	}
	return best
}

// outright returns the best shapes by the model, once it is trusted.
func (p *resizePlan) outright(j *ResizableJob) []Shape {
	if !j.Model.IsTrusted(j.Shape, j.Shape) {
		return nil
	}
	cores := j.Shape.Cores()
	base := math.Log(j.Facts.Speed(j.Shape, j.Model.StepSeconds(j.Shape)))
	values := []func(s Shape, logSpeed float64) float64{
		func(s Shape, logSpeed float64) float64 { return logSpeed - 1e-9*float64(s.Cores()) },
	}
	if p.view.QueuedJobs > 0 {
		values = append(values, func(s Shape, logSpeed float64) float64 {
			if !p.endsInTime(j, logSpeed-base) {
				return math.Inf(-1)
			}
			return logSpeed - math.Log(float64(s.Cores()))
		})
	}
	var found []Shape
	for i, value := range values {
		limit := cores
		if i == 0 && p.view.QueuedJobs == 0 {
			limit += max(0, p.view.FreeCores) / len(p.view.Jobs)
		}
		if s, ok := fastest(j, limit, p.o.Largest, value); ok && j.Model.IsTrusted(j.Shape, s) {
			found = append(found, s)
		}
	}
	return found
}

// rate returns the move to a shape if the rules allow it. While a queue waits, its score is the
// logarithm of the saved core-seconds, otherwise that of the speed per additional core.
func (p *resizePlan) rate(j *ResizableJob, to Shape) *proposal {
	mean, standardError := j.Model.Gain(j.Shape, to)
	lower := mean - p.o.BoundFactor*standardError
	if math.IsNaN(lower) {
		return nil
	}
	more := to.Cores() - j.Shape.Cores()
	growth := float64(more) / float64(j.Shape.Cores())
	saved := lower - math.Log1p(growth) // core-seconds
	m := &proposal{Resizing: Resizing{
		To: to, SpeedRatio: math.Exp(mean), LowerSpeedRatio: math.Exp(lower),
	}}
	isQueue := p.view.QueuedJobs > 0
	switch {
	case more > p.view.FreeCores:
		return nil
	case isQueue && more > 0 && p.isRestorable(j, to):
		m.Rule, m.score = RuleRestore, lower
	case more > 0:
		m.Rule, m.score = RuleGrow, lower/float64(more)
		if isQueue || math.Expm1(lower) < p.o.GrowthGainRatio*growth {
			return nil
		}
	case isQueue && more < 0 && p.endsInTime(j, lower) && p.paysBack(j, saved):
		m.Rule, m.score = RuleShrink, saved
		return m
	case math.Expm1(lower) >= p.o.ExchangeGainRatio:
		if m.Rule, m.score = RuleExchange, lower; isQueue {
			m.score = saved
		}
	default:
		return nil
	}
	if !p.paysBack(j, lower) {
		return nil
	}
	return m
}

// paysBack reports whether a gain saves enough of the remaining time, or of the core-seconds.
func (p *resizePlan) paysBack(j *ResizableJob, gain float64) bool {
	return j.remainingSeconds(0)-j.remainingSeconds(gain) >= p.o.CostFactor*j.Pause.Seconds() && gain > 0
}

// endsInTime reports whether a job that changes its speed by a logarithm still ends by its deadline,
// and no later than it would have with the requested shape.
func (p *resizePlan) endsInTime(j *ResizableJob, gain float64) bool {
	left := j.Pause.Seconds() + j.remainingSeconds(gain)
	return j.Elapsed.Seconds()+left <= j.requestedSeconds() && p.keepsDeadline(j, gain)
}

// keepsDeadline reports whether a job that changes its speed by a logarithm still ends by its deadline.
func (p *resizePlan) keepsDeadline(j *ResizableJob, gain float64) bool {
	left := j.Pause.Seconds() + j.remainingSeconds(gain)
	return j.Deadline.IsZero() || j.Deadline.Sub(p.now).Seconds() >= left
}

// requestedSeconds returns the run time of a job in the requested shape.
func (j *ResizableJob) requestedSeconds() float64 {
	return (j.DoneSamples + j.RemainingSamples) /
		j.Facts.Speed(j.Requested, j.Model.StepSeconds(j.Requested))
}

// isRestorable reports whether a job that would end later than with the requested shape may have a
// shape: it may take back the cores that it gave up, although others wait for them.
func (p *resizePlan) isRestorable(j *ResizableJob, to Shape) bool {
	ends := j.Elapsed.Seconds() + j.remainingSeconds(0)
	return to.Cores() <= j.Requested.Cores() && ends > j.requestedSeconds()
}
