package fit

import (
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

// growByOwnEpochs gives jobs the units that are left, at most one step to each job.
func growByOwnEpochs(v *policy.View, jobs []grower, left int) {
	units := make([]int, len(jobs))
	for i := range jobs {
		units[i] = jobs[i].move.Units
	}
	policy.Divide(units, left, func(i, units int) (to int, value float64) {
		g := &jobs[i]
		if units != g.held() || !g.mayGrow(v) {
			return 0, 0
		}
		to, gain := nextCPUs(g.Job, units)
		if g.Options[0].Curve.Rate(to) > 0 {
			return 0, 0
		}
		return to, gain / float64(to-units)
	})
	for i := range jobs {
		if g := &jobs[i]; units[i] > g.move.Units {
			mean, _ := g.Training.Model.Gain(shapeOf(g.held()), shapeOf(units[i]))
			g.move.Units, g.move.Shape, g.move.Reason = units[i], shapeOf(units[i]), policy.ReasonOwnEpochs
			g.move.SpeedRatio = math.Exp(mean)
		}
	}
}

// mayGrow reports whether the job may get CPUs by its own epochs: they show that its CPUs limit it, and
// it has no deadline that it keeps with the CPUs of the plan.
func (g *grower) mayGrow(v *policy.View) bool {
	isPromised := !g.Deadline.IsZero() && g.KeepsDeadline(v, g.Units)
	return !isPromised && g.Training != nil && g.Training.Bottleneck == schemas.BottleneckCPU
}
