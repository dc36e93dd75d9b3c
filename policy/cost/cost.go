// Package cost plans the resources of a tuning by successive halving, after CE-scaling (Wu et al.,
// IPDPS 2023): early stages with many trials run cheaply, late stages with few trials run fast.
//
// A stage of q trials and r epochs with an option of T seconds and cost C per epoch takes r T and
// costs q r C. FastestWithin minimizes the time under a budget, CheapestWithin the cost under a
// deadline. Both step greedily along the lower convex hull of the options, which is optimal but for
// the last step.
package cost

import (
	"cmp"
	"fmt"
	"slices"
)

// TrialOption is a configuration of one trial, with the time and the cost of one epoch.
type TrialOption struct {
	Name    string
	Seconds float64
	Cost    float64
}

// Stage is a stage of successive halving.
type Stage struct {
	Trials int // that run at the same time
	Epochs int // of each trial
}

// Halving returns the stages of successive halving: every stage keeps one of eta trials, until one
// is left.
func Halving(trials, eta, epochs int) (stages []Stage) {
	for ; trials >= 1; trials /= max(2, eta) {
		stages = append(stages, Stage{Trials: trials, Epochs: epochs})
	}
	return stages
}

// Front returns the lower convex hull of the options that no other one beats in both time and cost,
// the cheapest first.
func Front(options []TrialOption) []TrialOption {
	sorted := slices.DeleteFunc(slices.Clone(options), func(o TrialOption) bool {
		return !(o.Seconds > 0) || !(o.Cost >= 0)
	})
	slices.SortFunc(sorted, func(a, b TrialOption) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Seconds, b.Seconds))
	})
	var hull []TrialOption
	for _, o := range sorted {
		if n := len(hull); n > 0 && o.Seconds >= hull[n-1].Seconds {
			continue // slower and not cheaper
		}
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (a.Seconds-b.Seconds)*(o.Cost-b.Cost) > (b.Seconds-o.Seconds)*(b.Cost-a.Cost) {
				break // b lies below the line from a to o
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, o)
	}
	return hull
}

// Plan is the option of each stage, an index of the front.
type Plan struct {
	Options []int
	Seconds float64
	Cost    float64
}

// PlanOf returns the plan with these options.
func PlanOf(front []TrialOption, stages []Stage, options []int) Plan {
	p := Plan{Options: options}
	for i, s := range stages {
		o := front[options[i]]
		p.Seconds += float64(s.Epochs) * o.Seconds
		p.Cost += float64(s.Trials*s.Epochs) * o.Cost
	}
	return p
}

// step returns the time gained and the cost added by the next faster option of a stage.
func (p *Plan) step(front []TrialOption, s Stage, i int) (gain, added float64, ok bool) {
	k := p.Options[i]
	if k+1 >= len(front) {
		return 0, 0, false
	}
	gain = float64(s.Epochs) * (front[k].Seconds - front[k+1].Seconds)
	return gain, float64(s.Trials*s.Epochs) * (front[k+1].Cost - front[k].Cost), true
}

// best returns the stage whose next step gains the most time per cost among those that are allowed;
// -1 if there is none.
func (p *Plan) best(front []TrialOption, stages []Stage, isAllowed func(added float64) bool) int {
	best, ratio := -1, 0.0
	for i, s := range stages {
		gain, added, ok := p.step(front, s, i)
		if ok && isAllowed(added) && gain/added > ratio {
			best, ratio = i, gain/added
		}
	}
	return best
}

// FastestWithin returns the fastest plan that costs at most the budget. The error names the smallest
// budget that suffices.
func FastestWithin(front []TrialOption, stages []Stage, budget float64) (Plan, error) {
	if len(front) == 0 || len(stages) == 0 {
		return Plan{}, fmt.Errorf("%d options and %d stages, want one or more", len(front), len(stages))
	}
	p := PlanOf(front, stages, make([]int, len(stages)))
	if p.Cost > budget {
		return Plan{}, fmt.Errorf("the budget is %g, want at least %g", budget, p.Cost)
	}
	for {
		i := p.best(front, stages, func(added float64) bool { return p.Cost+added <= budget })
		if i < 0 {
			return p, nil
		}
		p.Options[i]++
		p = PlanOf(front, stages, p.Options)
	}
}

// CheapestWithin returns the cheapest plan that takes at most a deadline in seconds. The error names
// the shortest deadline that can be met.
func CheapestWithin(front []TrialOption, stages []Stage, deadline float64) (Plan, error) {
	if len(front) == 0 || len(stages) == 0 {
		return Plan{}, fmt.Errorf("%d options and %d stages, want one or more", len(front), len(stages))
	}
	p := PlanOf(front, stages, make([]int, len(stages)))
	for p.Seconds > deadline {
		i := p.best(front, stages, func(float64) bool { return true })
		if i < 0 {
			return Plan{}, fmt.Errorf("the deadline is %g s, want at least %g s", deadline, p.Seconds)
		}
		p.Options[i]++
		p = PlanOf(front, stages, p.Options)
	}
	for { // give back steps that are not needed, the most expensive first
		best, saved := -1, 0.0
		for i, k := range p.Options {
			if k == 0 {
				continue
			}
			back := slices.Clone(p.Options)
			back[i]--
			if q := PlanOf(front, stages, back); q.Seconds <= deadline && p.Cost-q.Cost > saved {
				best, saved = i, p.Cost-q.Cost
			}
		}
		if best < 0 {
			return p, nil
		}
		p.Options[best]--
		p = PlanOf(front, stages, p.Options)
	}
}

// Static returns the fastest plan within a budget whose stages all have the same option.
func Static(options []TrialOption, stages []Stage, budget float64) (Plan, bool) {
	var best Plan
	found := false
	for k := range options {
		same := make([]int, len(stages))
		for i := range same {
			same[i] = k
		}
		if p := PlanOf(options, stages, same); p.Cost <= budget && (!found || p.Seconds < best.Seconds) {
			best, found = p, true
		}
	}
	return best, found
}
