package sharing

import (
	"fmt"
	"math"

	"courier/simulate/figures"
)

// dqoesSatisfied is the increase of satisfied clients that the abstract of DQoES reports: up to 8 times
// as many.
const dqoesSatisfied = 7

// addDQoES adds how many more clients are satisfied than with fair sharing. In DQoES, each client names
// a target, and CPU moves from jobs that are ahead of theirs to those behind: that is the minimum
// satisfactory share for deadlines. The deadline policy contains it, and edf is simpler.
func addDQoES(f *figures.Comparisons) {
	for _, overSeconds := range []float64{200, 900} {
		for _, contention := range []float64{0, 0.1} {
			base := satisfied(RuleFair, overSeconds, contention)
			for _, r := range []struct {
				name string
				rule Rule
			}{
				{"DQoES by minimum satisfactory shares", RuleSatisfactory},
				{"DQoES by edf", RuleEarliest},
				{"DQoES by the deadline policy", RuleDeadline},
			} {
				variant := fmt.Sprintf("%s, %d random schedules of 10 jobs over %g s, contention %g",
					r.name, randomSeeds, overSeconds, contention)
				f.Group(r.name)
				f.AddIncreases("satisfied clients", figures.Bar(dqoesSatisfied), variant,
					increase(satisfied(r.rule, overSeconds, contention), base))
			}
		}
	}
	f.Group("")
}

// satisfied returns the number of jobs that meet their deadline, by schedule.
func satisfied(rule Rule, overSeconds, contention float64) []float64 {
	counts := make([]float64, randomSeeds)
	for seed := range counts {
		jobs := RandomJobs(10, overSeconds, defaultError, uint64(seed))
		got := Simulate(jobs, Sharing{Rule: rule}, contention)
		for i := range jobs {
			if got.Seconds[jobs[i].Name] <= jobs[i].Deadline {
				counts[seed]++
			}
		}
	}
	return counts
}

// increase returns the relative increase of the sum of counts over another one. Its interval is that of
// the jackknife over the schedules (Tukey 1958), because single schedules may have no satisfied client.
func increase(got, base []float64) figures.Interval {
	sumGot, sumBase := sumOf(got), sumOf(base)
	reached := sumGot/sumBase - 1
	n, squares := float64(len(got)), 0.0
	for i := range got {
		without := (sumGot-got[i])/(sumBase-base[i]) - 1
		squares += (without - reached) * (without - reached)
	}
	half := 1.96 * math.Sqrt((n-1)/n*squares)
	return figures.Interval{Reached: reached, Low: reached - half, High: reached + half}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
