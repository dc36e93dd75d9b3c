package sharing_test

import (
	"math"
	"testing"

	"courier/simulate/sharing"
)

// Two jobs reach 90 % of the fall of their losses after 4.6 and 23.0 s of work. From the review at 10 s
// on, the first one has a quarter of the node, until the second one is delivered too.
func TestSimulate_DeliversTheSecondJobSooner(t *testing.T) {
	jobs := []sharing.TrainingJob{
		{Name: "fast", Work: 100, Decay: 0.02},
		{Name: "slow", Work: 100, Decay: 0.1},
	}
	for rule, want := range map[sharing.Rule]float64{sharing.RuleFair: 46.05, sharing.RuleDeliver: 34.04} {
		got := sharing.Simulate(jobs, sharing.Sharing{Rule: rule, Interval: 10}, 0)
		if math.Abs(got.Quality["fast"]-9.21) > 0.1 || math.Abs(got.Quality["slow"]-want) > 0.1 {
			t.Errorf("%s: delivered after %.2f and %.2f s, want 9.21 and %.2f s", rule,
				got.Quality["fast"], got.Quality["slow"], want)
		}
		if math.Abs(got.Makespan-200) > 0.2 {
			t.Errorf("%s: makespan %.2f s, want 200 s, the sum of the work", rule, got.Makespan)
		}
	}
}

// With contention, the best job reaches its first target 48.2 % sooner, as published. All jobs reach it
// sooner than with FlowCon, and end later than with fair sharing.
func TestReproduce_ReportsTRADL(t *testing.T) {
	reached := byVariant(reproduced())
	isMet := map[string]bool{
		", 30 random schedules of 10 jobs over 200 s, contention 0":   false,
		", 30 random schedules of 10 jobs over 200 s, contention 0.1": true,
		", 30 random schedules of 10 jobs over 900 s, contention 0":   false,
		", 30 random schedules of 10 jobs over 900 s, contention 0.1": true,
	}
	for schedule, want := range isMet {
		const all = ": time to the first target of all jobs, mean"
		best := reached["TRADL"+schedule+": time to the first target of the best job, mean"]
		if best.Target == nil || *best.Target != 0.482 || *best.IsMet != want {
			t.Errorf("best job%s: %+v, want met %t", schedule, best, want)
		}
		tradl, flowcon := reached["TRADL"+schedule+all], reached["FlowCon by the target of TRADL"+schedule+all]
		if !(tradl.Low > flowcon.High) {
			t.Errorf("all jobs%s: %+v, with FlowCon %+v", schedule, tradl, flowcon)
		}
		if end := reached["TRADL"+schedule+": completion time of all jobs, mean"]; !(end.High < 0) {
			t.Errorf("ends of all jobs%s: %+v, want later ones", schedule, end)
		}
	}
}
