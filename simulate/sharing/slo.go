package sharing

import (
	"fmt"
	"math"

	"courier/simulate/figures"
)

// Schedules of ReproduceSLO: 10 jobs over 900 s. The options of policy/deadline were chosen on the
// first ones; the fresh ones show whether they hold.
const (
	sloJobs    = 10
	sloSeconds = 900
	sloSeeds   = 25
	freshSeeds = 75
	firstFresh = 100
)

// predictionErrors are the standard deviations of the logarithm of a predicted remaining time.
var predictionErrors = []float64{0, 0.1, 0.3, 0.5}

// defaultError is the prediction error of the comparison of all policies.
const defaultError = 0.1

// contentions of the node.
var contentions = []float64{0, 0.1, 0.2}

// targets are the targets of a policy by contention or by prediction error.
type targets []figures.Target

// at returns a target; none if there are fewer.
func (t targets) at(i int) figures.Target {
	if i >= len(t) {
		return figures.Target{}
	}
	return t[i]
}

// reported returns figures that a page printed.
func reported(values ...float64) (all targets) {
	for _, v := range values {
		all = append(all, figures.Reported(v))
	}
	return all
}

// sloPolicy is a policy with its targets by contention: the figures of section 5 of the design page
// resource-policies, and for policy/deadline the bars that it has to meet.
type sloPolicy struct {
	name    string
	sharing Sharing
	kept    targets
	average targets // reduction of the mean completion time, against fair sharing
	quality targets // reduction of the time to 90 % of the fall of the loss
	byError targets // kept by prediction error; nil: the policy does not predict
}

// keptBar is the bar of the deadlines that policy/deadline keeps, up to a prediction error of 0.3.
var keptBar = figures.Bar(0.97)

var sloPolicies = []sloPolicy{
	{"fair sharing", Sharing{Rule: RuleFair}, reported(0.79, 0.62, 0.53), nil, nil, nil},
	{
		"FlowCon, weights, beta 2", Sharing{Interval: 10}, reported(0.82, 0.70, 0.60),
		reported(-0.03, 0.05, 0.10), reported(0.13, 0.21, 0.28), nil,
	},
	{
		"minimum satisfactory share", Sharing{Rule: RuleSatisfactory}, reported(0.92, 0.83, 0.77),
		reported(0.09, 0.20, 0.32), reported(-0.03, 0.07, 0.16), nil,
	},
	{
		"srpt", Sharing{Rule: RuleShortest}, reported(0.96, 0.96, 0.95),
		reported(0.26, 0.41, 0.52), reported(-0.14, 0.11, 0.29), reported(0.96, 0.96, 0.95, 0.92),
	},
	{
		"edf", Sharing{Rule: RuleEarliest}, reported(0.99, 0.99, 0.99),
		reported(0.23, 0.38, 0.50), reported(-0.08, 0.15, 0.32), reported(0.99, 0.99, 0.99, 0.97),
	},
	{
		"deadline", Sharing{Rule: RuleDeadline}, targets{keptBar, keptBar, keptBar},
		targets{{}, figures.Bar(0.20)}, nil, targets{keptBar, keptBar, keptBar},
	},
}

// ReproduceSLO compares policies on one node by kept deadlines and completion times.
func ReproduceSLO() *figures.Comparisons {
	f := &figures.Comparisons{}
	for i := range sloPolicies {
		p := &sloPolicies[i]
		for k, contention := range contentions {
			r := p.simulate(contention, defaultError, 0, sloSeeds)
			variant := fmt.Sprintf("%s, contention %g, prediction error %g", p.name, contention, defaultError)
			f.AddLevels("deadlines kept", p.kept.at(k), variant, r.kept())
			if p.sharing.Rule != RuleFair {
				f.AddReductions("mean completion time", p.average.at(k), variant, r.averages)
				f.AddReductions("mean time to 90 % of the loss reduction", p.quality.at(k), variant,
					r.qualities)
			}
		}
	}
	for i := range sloPolicies {
		if p := &sloPolicies[i]; p.byError != nil {
			p.addErrors(f)
		}
	}
	addDQoES(f)
	return f
}

// addErrors adds the kept deadlines by prediction error.
func (p *sloPolicy) addErrors(f *figures.Comparisons) {
	for _, contention := range contentions {
		for e, predictionError := range predictionErrors {
			if contention > 0 && p.sharing.Rule != RuleDeadline {
				continue // without a target
			}
			variant := fmt.Sprintf("%s, contention %g, prediction error %g", p.name, contention, predictionError)
			if predictionError != defaultError {
				r := p.simulate(contention, predictionError, 0, sloSeeds)
				f.AddLevels("deadlines kept", p.byError.at(e), variant, r.kept())
			}
			if p.sharing.Rule == RuleDeadline {
				r := p.simulate(contention, predictionError, firstFresh, freshSeeds)
				f.AddLevels("deadlines kept", p.byError.at(e), variant+", fresh schedules", r.kept())
			}
		}
	}
}

// sloRun are the effects of a policy on random schedules.
type sloRun struct {
	inTime, jobs        int
	averages, qualities []float64 // by schedule
}

func (p *sloPolicy) simulate(contention, predictionError float64, first, seeds uint64) *sloRun {
	r := &sloRun{}
	for seed := first; seed < first+seeds; seed++ {
		jobs := RandomJobs(sloJobs, sloSeconds, predictionError, seed)
		fair := Simulate(jobs, Sharing{Rule: RuleFair}, contention)
		got := Simulate(jobs, p.sharing, contention)
		for i := range jobs {
			if got.Seconds[jobs[i].Name] <= jobs[i].Deadline {
				r.inTime++
			}
		}
		r.jobs += len(jobs)
		r.averages = append(r.averages, 1-total(jobs, got.Seconds)/total(jobs, fair.Seconds))
		r.qualities = append(r.qualities, 1-total(jobs, got.Quality)/total(jobs, fair.Quality))
	}
	return r
}

// kept returns the ratio of kept deadlines with its 95 % interval (Wilson 1927).
func (r *sloRun) kept() figures.Interval {
	const z = 1.96
	n := float64(r.jobs)
	p := float64(r.inTime) / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return figures.Interval{Reached: p, Low: middle - half, High: middle + half}
}
