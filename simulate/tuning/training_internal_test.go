package tuning

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"courier/simulate/figures"
	"courier/tune/halving"
)

// Deadlines are kept at their confidence with both families of curves. The other bars are near what is
// reached: with 2 % noise, the first fifth of an exponential curve is nearly straight.
func TestTrainings(t *testing.T) {
	bars := map[string]map[string]float64{
		familyHyperbolic: {
			"error of the remaining epochs after 20 %, median": 0.23,
			"error of the remaining epochs after 50 %, median": 0.1,
			"cost above a planner that knows the curve, mean":  0.15,
		},
		familyExponential: {
			"error of the remaining epochs after 20 %, median": 0.26,
			"error of the remaining epochs after 50 %, median": 0.12,
			"cost above a planner that knows the curve, mean":  0.35,
		},
	}
	var all figures.Comparisons
	addTrainings(&all, trainingRuns/2)
	for _, f := range all.Figures {
		t.Logf("%s, %s: %.3f", f.Variant, f.Name, f.Reached)
		family, _, _ := strings.Cut(f.Variant, " ")
		bar, isError := bars[family][f.Name]
		isKept := strings.HasPrefix(f.Name, "deadlines kept")
		if isError && f.Reached > bar || isKept && f.Reached < 0.95 || f.Target == nil {
			t.Errorf("%s, %s: %.3f, want %.3f", f.Variant, f.Name, f.Reached, bar)
		}
	}
}

// The exhaustive search finds the plan that the greedy one must come near to.
func TestFastest_SearchesAllPlans(t *testing.T) {
	front := []halving.TrialOption{{Seconds: 10, Cost: 1}, {Seconds: 5, Cost: 3}}
	stages := []halving.Stage{{Trials: 4, Epochs: 1}, {Trials: 1, Epochs: 2}}
	for budget, want := range map[float64]float64{5: math.Inf(1), 6: 30, 10: 20, 14: 20, 18: 15} {
		if got := fastest(front, stages, budget); got != want {
			t.Errorf("fastest within %g = %g s, want %g s", budget, got, want)
		}
	}
}

// Nobody is cheaper than a planner that knows the curve, and a run with any deadline spends at most
// what the fastest option costs, plus its switches.
func TestTrain_CostsAtLeastAsMuchAsAKnownCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		front := halving.Front(Networks()[random.IntN(3)].Options())
		curve := randomCurve(random, familyHyperbolic)
		fastest := front[len(front)-1].Seconds
		deadline := float64(curve.epochs) * fastest * (1 + 20*random.Float64())
		r := curve.train(random, front, deadline)
		if r.isKept && r.costRatio < 1-1e-9 {
			t.Errorf("a kept deadline costs %.3f of the least possible", r.costRatio)
		}
	}
}

func TestKnownCost_InterpolatesTheFront(t *testing.T) {
	front := []halving.TrialOption{{Seconds: 10, Cost: 1}, {Seconds: 5, Cost: 3}}
	for _, c := range []struct{ deadline, want float64 }{{200, 10}, {100, 10}, {75, 20}, {50, 30}, {10, 30}} {
		if got := knownCost(front, 10, c.deadline); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("knownCost within %g s = %g, want %g", c.deadline, got, c.want)
		}
	}
}
