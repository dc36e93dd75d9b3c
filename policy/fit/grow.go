package fit

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
	"courier/schemas"
)

// Grow returns a policy that gives the units that p leaves free to jobs that were never measured with so
// many, if their own epochs show that they would be faster: first where a unit gains most. The caller
// undoes a move that does not bring half of its gain. Nothing is promised from such a gain, so a job that
// is likely to keep its promise does not grow.
//
// Jobs keep the units by which they have grown, as long as no other job gets them.
func Grow(p policy.Policy) policy.Policy { return growth{p, true} }

// KeepGrown is Grow for a policy that saves units, under which no job grows any more.
func KeepGrown(p policy.Policy) policy.Policy { return growth{p, false} }

type growth struct {
	policy.Policy
	mayGrow bool
}

// grower is a running job with the units that it gets.
type grower struct {
	*policy.Job
	move policy.Move // its units are the target
}

func (g *grower) held() int { return g.Units + g.Grown }

// Plan implements policy.Policy.
func (g growth) Plan(v *policy.View) (moves []policy.Move) {
	jobs := make([]grower, len(v.Jobs))
	for i := range v.Jobs {
		j := &v.Jobs[i]
		jobs[i] = grower{j, policy.Move{
			Kind: policy.Resize, Job: j.ID, Units: j.Units, Reason: policy.ReasonYield,
		}}
	}
	left := v.Units
	for _, m := range g.Policy.Plan(v) {
		i := slices.IndexFunc(jobs, func(j grower) bool { return j.ID == m.Job })
		if i >= 0 && m.Kind == policy.Resize {
			jobs[i].move = m
			continue
		}
		left -= m.Units
		moves = append(moves, m)
	}
	for i := range jobs {
		left -= jobs[i].move.Units
	}

	for i := range jobs {
		j := &jobs[i]
		if j.Grown > 0 && j.move.Units == j.Units && j.Grown <= left {
			j.move.Units = j.held()
			left -= j.Grown
		}
	}
	if g.mayGrow {
		growByOwnEpochs(v, jobs, left)
	}
	for _, j := range jobs {
		if j.move.Units != j.held() {
			moves = append(moves, j.move)
		}
	}
	return moves
}

// growByOwnEpochs gives jobs the units that are left.
func growByOwnEpochs(v *policy.View, jobs []grower, left int) {
	var found []ownGrowth
	for i := range jobs {
		if g := jobs[i].ownGrowth(v); g != nil {
			found = append(found, *g)
		}
	}
	slices.SortStableFunc(found, func(a, b ownGrowth) int { return cmp.Compare(b.gain, a.gain) })
	for _, g := range found {
		if more := g.move.Units - g.job.held(); more <= left {
			left -= more
			g.job.move = g.move
		}
	}
}

// ownGrowth is a move by which a job may grow by its own epochs.
type ownGrowth struct {
	job  *grower
	move policy.Move
	gain float64 // lower bound of the logarithm of the ratio of the speeds, per unit
}

// ownGrowth returns the next number of units to which the job may grow by its own epochs; nil if there
// is none.
func (g *grower) ownGrowth(v *policy.View) *ownGrowth {
	isPromised := !g.Deadline.IsZero() && g.KeepsDeadline(v, g.Units)
	if isPromised || g.Training == nil || g.Training.Bottleneck != schemas.BottleneckCPU ||
		g.move.Units != g.held() {
		return nil
	}
	to, gain := nextCPUs(g.Job, g.held())
	if gain == 0 || g.Options[0].Curve.Rate(to) > 0 {
		return nil
	}
	mean, _ := g.Training.Model.Gain(shapeOf(g.held()), shapeOf(to))
	m := policy.Move{
		Kind: policy.Resize, Job: g.ID, Units: to, Shape: shapeOf(to),
		Reason: policy.ReasonOwnEpochs, SpeedRatio: math.Exp(mean),
	}
	return &ownGrowth{job: g, move: m, gain: gain / float64(to-g.held())}
}
