// Package fit resizes distributed trainings: it fits their workers, cores and parameter servers to
// what limits their speed.
//
// The idea is that of NEARCHUS (Tariq et al., NOMS 2024): watch a job, find its bottleneck, change
// its resources. The rule is Courier's own. A model of the step time, which is learned from the
// job's own steps, prices every neighbouring shape, and the best lower bound of the gain wins. The
// bottleneck only adds candidates.
//
// The policy keeps no state. Its caller keeps the policy.Record of each job between two calls (Remember),
// collects step reports since the last change of the job's shape, and carries out the moves. Plan returns
// at most one move per job and window, never a shape with less than one worker or core, and never
// takes more cores than are free. A job without a stable window is left alone.
//
// Node is for jobs on a node, which have a number of CPUs instead of a shape.
package fit

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
	"courier/policy/speed"
)

// Policy is the policy. It decides nothing about a queue, but a queue keeps jobs from growing. It is safe
// for concurrent use.
type Policy struct{ largest speed.Shape }

// New returns the policy. No number of a shape exceeds that of the largest one; models must be learned
// for the same.
func New(largest speed.Shape) *Policy { return &Policy{largest} }

type resizePlan struct {
	view      *policy.View
	freeCores int
	trainings int
	largest   speed.Shape
}

func (p *Policy) planOf(v *policy.View) *resizePlan {
	r := &resizePlan{view: v, freeCores: v.Units, largest: p.largest}
	for i := range v.Jobs {
		if r.freeCores -= v.Jobs[i].Units; v.Jobs[i].Training != nil {
			r.trainings++
		}
	}
	return r
}

// proposal is the best move of a job.
type proposal struct {
	policy.Move
	from  speed.Shape
	index int     // of the job in the view
	score float64 // lower bound of the gain, see resizePlan.rate
	slack float64 // seconds to the deadline that the job does not need
}

// Plan implements policy.Policy.
func (p *Policy) Plan(v *policy.View) (moves []policy.Move) {
	r := p.planOf(v)
	var proposals []*proposal
	for i := range v.Jobs {
		if found := r.consider(&v.Jobs[i]); found != nil {
			found.index = i
			proposals = append(proposals, found)
		}
	}
	slices.SortFunc(proposals, func(a, b *proposal) int {
		return cmp.Or(
			cmp.Compare(slices.Index(ruleOrder, a.Reason), slices.Index(ruleOrder, b.Reason)),
			cmp.Compare(b.score, a.score), cmp.Compare(a.slack, b.slack), cmp.Compare(a.index, b.index),
		)
	})
	free := max(0, r.freeCores)
	for _, m := range proposals {
		more := m.Units - m.from.Cores()
		if more > free {
			continue
		}
		free -= max(0, more)
		moves = append(moves, m.Move)
	}
	return moves
}

// Remember returns the new record of each training, by job, after the moves of a plan.
func (p *Policy) Remember(v *policy.View, moves []policy.Move) map[string]policy.Record {
	r, records := p.planOf(v), map[string]policy.Record{}
	for i := range v.Jobs {
		job := &v.Jobs[i]
		if job.Training == nil {
			continue
		}
		record, _ := r.judged(job)
		at := slices.IndexFunc(moves, func(m policy.Move) bool { return m.Job == job.ID })
		if at >= 0 && moves[at].Reason != policy.ReasonUndo {
			record.Trial = trialOf(&moves[at], job.Training)
		}
		records[job.ID] = record
	}
	return records
}

// ruleOrder is the order in which moves are carried out: those that free cores, then those that need none.
var ruleOrder = []policy.Reason{
	policy.ReasonUndo, policy.ReasonRestore, policy.ReasonShrink, policy.ReasonExchange, policy.ReasonGrow,
}

// trialOf returns what a move has to be judged by later.
func trialOf(m *policy.Move, j *policy.Training) *policy.Trial {
	t := &policy.Trial{
		From:        j.Shape,
		StepSeconds: speed.MeanOf(j.Window).StepSeconds,
		Reports:     len(j.Window),
		Gain:        math.Log(m.SpeedRatio),
		IsShrink:    m.Reason == policy.ReasonShrink,
	}
	if t.IsShrink {
		t.Gain -= math.Log(float64(m.Units) / float64(j.Shape.Cores()))
	}
	return t
}

// judged returns the record of a training after its previous move was judged, and the move that undoes
// that, if there is one.
func (p *resizePlan) judged(job *policy.Job) (policy.Record, *proposal) {
	t := job.Training
	record := t.Record
	record.Barred = slices.DeleteFunc(slices.Clone(record.Barred), func(b policy.BarredShape) bool {
		return !b.Until.After(p.view.Now)
	})
	if !isReady(t) {
		return record, nil
	}
	j := newPlanned(job, p.view.Now)
	undo := p.judge(&j, &record)
	return record, undo
}

// isReady reports whether a training can be judged and moved.
func isReady(t *policy.Training) bool {
	return t.Model != nil && t.Shape.IsValid(t.Facts.HasServers) && t.Requested.IsValid(t.Facts.HasServers) &&
		speed.IsStable(t.Window) && t.Window[0].Shape == t.Shape && t.RemainingSamples > 0
}

// consider returns the best next move of a job, if there is one.
func (p *resizePlan) consider(job *policy.Job) *proposal {
	if job.Training == nil || !isReady(job.Training) {
		return nil
	}
	record, best := p.judged(job)
	j := newPlanned(job, p.view.Now)
	if best == nil && !record.RestUntil.After(p.view.Now) {
		best = p.best(&j, record.Barred)
	}
	if best != nil {
		best.Kind, best.Job, best.Units, best.from = policy.Resize, job.ID, best.Shape.Cores(), j.Shape
		best.slack = j.left - j.remaining
	}
	return best
}

func (p *resizePlan) best(j *planned, barred []policy.BarredShape) *proposal {
	best := proposal{Move: policy.Move{Shape: j.Shape}}
	consider := func(to speed.Shape, isDistant bool) {
		if to == j.Shape || !p.isAllowed(j, barred, to) {
			return
		}
		mean, standardError := j.Model.Gain(j.Shape, to)
		if isDistant && standardError > trustedErrorRatio {
			return
		}
		ratio := speedRatio{
			mean:  math.Exp(mean),
			lower: math.Exp(mean - boundFactor*standardError),
			safe:  math.Exp(mean - deadlineFactor*standardError),
		}
		rule, score := p.rate(j, to, &ratio)
		if score > best.score && (rule != policy.ReasonShrink || j.surelyEndsInTime(to)) {
			best.Shape, best.Reason, best.score = to, rule, score
			best.SpeedRatio, best.LowerSpeedRatio = ratio.mean, ratio.lower
		}
	}
	for _, to := range p.outright(j) {
		consider(to, true)
	}
	for _, to := range append(j.Shape.Neighbours(j.Facts.HasServers, p.largest), j.Requested) {
		consider(to, false)
	}
	if best.score == 0 {
		return nil
	}
	return &best
}

// isAllowed reports whether a job may have a shape: it is valid and not barred, its cores are free, and
// while a queue waits, a job only grows to be restored.
func (p *resizePlan) isAllowed(j *planned, barred []policy.BarredShape, to speed.Shape) bool {
	if !to.IsValid(j.Facts.HasServers) || !to.IsWithin(&p.largest) {
		return false
	}
	more := to.Cores() - j.Shape.Cores()
	if more > 0 && (more > p.freeCores || len(p.view.Queue) > 0 && !j.isRestorable(to)) {
		return false
	}
	isBarred := slices.ContainsFunc(barred, func(b policy.BarredShape) bool { return b.Shape == to })
	return !isBarred
}

// outright returns the best shapes by the model, if it knows enough shapes.
func (p *resizePlan) outright(j *planned) (found []speed.Shape) {
	if !j.Model.IsTrusted() {
		return nil
	}
	cores := j.Shape.Cores()
	if len(p.view.Queue) == 0 {
		cores += max(0, p.freeCores) / p.trainings
	}
	if s, ok := j.Model.Fastest(cores); ok {
		found = append(found, s)
	}
	if len(p.view.Queue) > 0 {
		if s, ok := j.Model.Cheapest(cores, j.minSpeed()); ok {
			found = append(found, s)
		}
	}
	return found
}

// speedRatio is the speed of a shape, divided by the present one. boundFactor defines the lower bound,
// and deadlineFactor the safe one.
type speedRatio struct{ mean, lower, safe float64 }

// rate returns the rule that allows a job to have a shape, and a score above 0. While a queue waits,
// the score is the ratio of the core-seconds before and after the move, minus one; otherwise the
// logarithm of the ratio of the speed, per additional core. It is 0 if no rule allows the shape.
// Higher ratios never have a lower score.
func (p *resizePlan) rate(j *planned, to speed.Shape, ratio *speedRatio) (r policy.Reason, score float64) {
	cores := j.Shape.Cores()
	more, isQueue := to.Cores()-cores, len(p.view.Queue) > 0
	growth := float64(more) / float64(cores)
	lower := ratio.lower
	saving := lower / (1 + growth) // ratio of core-seconds
	keepsDeadline := j.keepsDeadline(ratio.safe)
	isShrink := isQueue && more < 0 && keepsDeadline && j.endsInTime(ratio.mean)
	switch {
	case isShrink && j.paysBack(saving):
		return policy.ReasonShrink, saving - 1
	case !j.paysBack(lower) || ratio.safe < 1 && !keepsDeadline:
		return r, 0
	case isQueue && more > 0:
		return policy.ReasonRestore, lower - 1
	case more > 0 && lower-1 >= growthGainRatio*growth:
		return policy.ReasonGrow, math.Log(lower) / float64(more)
	case more > 0 || lower-1 < exchangeGainRatio:
		return r, 0
	case isQueue:
		return policy.ReasonExchange, saving - 1
	}
	return policy.ReasonExchange, math.Log(lower)
}
