// Package halving plans the resources of a tuning by successive halving, after CE-scaling (Wu et al.,
// IPDPS 2023): early stages with many trials run cheaply, late stages with few trials run fast.
//
// A stage of q trials and r epochs with an option of T seconds and cost C per epoch takes r T and
// costs q r C. FastestWithin minimizes the time under a budget, CheapestWithin the cost under a
// deadline. Both step greedily along the lower convex hull of the options, which is optimal but for
// the last step.
//
// FrontsOf is for trials that all run at the same time. On a pool of cores, the trials of a stage run
// in waves: PoolFronts.
package halving

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// TrialOption is a configuration of one trial, with the time and the cost of one epoch.
type TrialOption struct {
	Cores   int // of the trial on a pool; 0: not on a pool
	Seconds float64
	Cost    float64
}

// Stage is a stage of successive halving.
type Stage struct {
	Trials int // that run at the same time
	Epochs int // of each trial
}

// Stages returns the stages of successive halving: every stage keeps one of eta trials, until one
// is left.
func Stages(trials, eta, epochs int) (stages []Stage) {
	for ; trials >= 1; trials /= max(2, eta) {
		stages = append(stages, Stage{Trials: trials, Epochs: epochs})
	}
	return stages
}

// Front returns the lower convex hull of the options that no other one beats in both time and cost,
// the cheapest first. It leaves out options whose time or cost is not a finite number.
func Front(options []TrialOption) []TrialOption {
	sorted := slices.DeleteFunc(slices.Clone(options), func(o TrialOption) bool {
		return !(o.Seconds > 0) || !(o.Cost >= 0) || math.IsInf(o.Seconds+o.Cost, 1)
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

// Plan is the option of each stage, an index of its front.
type Plan struct {
	Options []int
	Seconds float64
	Cost    float64
}

// StageFronts are the options of each stage. Their times and costs are those of the whole stage.
type StageFronts [][]TrialOption

// FrontsOf returns the fronts of stages whose trials all run at the same time.
func FrontsOf(front []TrialOption, stages []Stage) StageFronts {
	fronts := make(StageFronts, len(stages))
	for i, s := range stages {
		for _, o := range front {
			o.Seconds *= float64(s.Epochs)
			o.Cost *= float64(s.Trials * s.Epochs)
			fronts[i] = append(fronts[i], o)
		}
	}
	return fronts
}

// PlanOf returns the plan with these options.
func (f StageFronts) PlanOf(options []int) Plan {
	p := Plan{Options: options}
	for i, k := range options {
		p.Seconds += f[i][k].Seconds
		p.Cost += f[i][k].Cost
	}
	return p
}

// Cheapest returns the plan with the first option of each stage, the cheapest of its front.
func (f StageFronts) Cheapest() Plan { return f.PlanOf(make([]int, len(f))) }

// Fastest returns the plan with the last option of each stage, the fastest of its front.
func (f StageFronts) Fastest() Plan {
	options := make([]int, len(f))
	for i := range f {
		options[i] = len(f[i]) - 1
	}
	return f.PlanOf(options)
}

func (f StageFronts) validate() error {
	if len(f) == 0 {
		return errors.New("no stages, want one or more")
	}
	for i := range f {
		if len(f[i]) == 0 {
			return fmt.Errorf("stage %d has no options, want one or more", i+1)
		}
	}
	return nil
}

// best returns the stage whose next faster option gains the most time per added cost among those that
// are allowed; -1 if there is none.
func (f StageFronts) best(p *Plan, isAllowed func(added float64) bool) int {
	best, ratio := -1, 0.0
	for i, k := range p.Options {
		if k+1 == len(f[i]) {
			continue
		}
		now, next := f[i][k], f[i][k+1]
		added := next.Cost - now.Cost
		if r := (now.Seconds - next.Seconds) / added; r > ratio && isAllowed(added) {
			best, ratio = i, r
		}
	}
	return best
}

// FastestWithin returns the fastest plan that costs at most the budget. The error names the smallest
// budget that suffices.
func (f StageFronts) FastestWithin(budget float64) (Plan, error) {
	if err := f.validate(); err != nil {
		return Plan{}, err
	}
	p := f.Cheapest()
	if !(p.Cost <= budget) {
		return Plan{}, fmt.Errorf("the budget is %g, want at least %g", budget, p.Cost)
	}
	for {
		i := f.best(&p, func(added float64) bool { return p.Cost+added <= budget })
		if i < 0 {
			return p, nil
		}
		p.Options[i]++
		p = f.PlanOf(p.Options)
	}
}

// CheapestWithin returns the cheapest plan that takes at most a deadline in seconds. The error names
// the shortest deadline that can be met.
func (f StageFronts) CheapestWithin(deadline float64) (Plan, error) {
	if err := f.validate(); err != nil {
		return Plan{}, err
	}
	p := f.Cheapest()
	for !(p.Seconds <= deadline) {
		i := f.best(&p, func(float64) bool { return true })
		if i < 0 {
			return Plan{}, fmt.Errorf("the deadline is %g s, want at least %g s", deadline, p.Seconds)
		}
		p.Options[i]++
		p = f.PlanOf(p.Options)
	}
	return f.giveBack(p, deadline), nil
}

// giveBack takes back steps that the deadline does not need, the most expensive first.
func (f StageFronts) giveBack(p Plan, deadline float64) Plan {
	for {
		best, saved := -1, 0.0
		for i, k := range p.Options {
			if k == 0 {
				continue
			}
			back := slices.Clone(p.Options)
			back[i]--
			if q := f.PlanOf(back); q.Seconds <= deadline && p.Cost-q.Cost > saved {
				best, saved = i, p.Cost-q.Cost
			}
		}
		if best < 0 {
			return p
		}
		p.Options[best]--
		p = f.PlanOf(p.Options)
	}
}

// Static returns the fastest plan within a budget whose stages all have the same option; false if
// there is none.
func (f StageFronts) Static(budget float64) (best Plan, isFound bool) {
	for k := range f[0] {
		p := f.PlanOf(slices.Repeat([]int{k}, len(f)))
		if p.Cost <= budget && (!isFound || p.Seconds < best.Seconds) {
			best, isFound = p, true
		}
	}
	return best, isFound
}

// PoolSpeed is the speed of a trial with a number of cores.
type PoolSpeed struct {
	Cores        int
	EpochSeconds float64
	StartSeconds float64 // of each start of the command, beside its epochs
}

// Waves returns how often a pool of cores must be filled until each trial has run once; 0 if a trial
// does not fit into the pool. Where the cores of a trial divide the pool, it is
// ceil(trials cores/pool).
func Waves(trials, cores, pool int) int {
	if cores < 1 || cores > pool {
		return 0
	}
	atOnce := pool / cores
	return (trials + atOnce - 1) / atOnce
}

// PoolOptions returns the options of a stage on a pool of cores, in the order of the speeds, with the
// time of all waves and the cost of all trials in core-seconds. Speeds that do not fit into the pool are
// left out.
func (s Stage) PoolOptions(speeds []PoolSpeed, pool int) (options []TrialOption) {
	for _, v := range speeds {
		waves := Waves(s.Trials, v.Cores, pool)
		if waves == 0 && s.Trials > 0 {
			continue
		}
		trial := v.StartSeconds + float64(s.Epochs)*v.EpochSeconds
		options = append(options, TrialOption{
			Cores:   v.Cores,
			Seconds: float64(waves) * trial,
			Cost:    float64(s.Trials*v.Cores) * trial,
		})
	}
	return options
}

// PoolFronts returns the front of each stage on a pool of cores.
func PoolFronts(stages []Stage, speeds []PoolSpeed, pool int) (fronts StageFronts) {
	for _, s := range stages {
		fronts = append(fronts, Front(s.PoolOptions(speeds, pool)))
	}
	return fronts
}
