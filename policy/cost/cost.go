// Package cost keeps the promises to the running jobs of a node with few unit-seconds.
package cost

import "courier/policy"

// Policy gives each running job of a node the fewest units with which its promise is kept, and more only
// where that saves unit-seconds. It decides nothing about a queue, and needs the floors of policy.Guard. It
// is safe for concurrent use.
type Policy struct{}

// minSaving is the ratio of unit-seconds that more units than the promise needs must save. Predictions
// scatter by as much.
const minSaving = 0.05

// Plan implements policy.Policy.
func (Policy) Plan(v *policy.View) (moves []policy.Move) {
	free := v.Units
	units := make([]int, len(v.Jobs))
	for i := range v.Jobs {
		units[i] = fewestUnits(v, &v.Jobs[i])
		free -= units[i]
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		reason := policy.ReasonCost
		if units[i] > j.Units {
			reason = policy.ReasonShare
		}
		best := units[i]
		for _, p := range j.Options[0].Curve {
			isAsLate := j.KeepsDeadline(v, p.Units) == j.KeepsDeadline(v, units[i])
			if p.Units > best && p.Units-units[i] <= free && isAsLate &&
				unitSeconds(j, p.Units) < (1-minSaving)*unitSeconds(j, best) {
				best, reason = p.Units, policy.ReasonCost
			}
		}
		free -= best - units[i]
		if best != j.Units {
			moves = append(moves, policy.Move{Kind: policy.Resize, Job: j.ID, Units: best, Reason: reason})
		}
	}
	return moves
}

// fewestUnits returns the units to which a job may shrink. It must keep its deadline by a margin, or the
// next slow epoch would take the units back.
func fewestUnits(v *policy.View, j *policy.Job) int {
	if j.Floor >= j.Units || j.Deadline.IsZero() || !j.KeepsDeadline(v, j.Units) {
		return j.Floor
	}
	for _, p := range j.Options[0].Curve {
		if p.Units >= j.Floor && p.Units < j.Units && j.KeepsClearly(v, p.Units) {
			return p.Units
		}
	}
	return j.Units
}

// unitSeconds returns the expected units times seconds until the end; +Inf if they are unknown.
func unitSeconds(j *policy.Job, units int) float64 {
	return float64(units) * j.ExpectedSeconds(units)
}
