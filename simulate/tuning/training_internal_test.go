package tuning

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/policy/cost"
)

// Deadlines are kept at their confidence with both families of curves. The other bars are near what is
// reached: with 2 % noise, the first fifth of an exponential curve is nearly straight.
func TestTrainings(t *testing.T) {
	bars := map[string]map[string]float64{
		cost.FamilyHyperbolic: {
			"error of the remaining epochs after 20 % (median)": 0.23,
			"error of the remaining epochs after 50 % (median)": 0.1,
			"cost above a planner that knows the curve (mean)":  0.15,
		},
		cost.FamilyExponential: {
			"error of the remaining epochs after 20 % (median)": 0.26,
			"error of the remaining epochs after 50 % (median)": 0.12,
			"cost above a planner that knows the curve (mean)":  0.35,
		},
	}
	for _, f := range trainings(trainingRuns / 2) {
		t.Logf("%+v", f)
		bar, isError := bars[f.Curve][f.Name]
		if isError && f.Reached > bar || !isError && f.Reached < 0.95 {
			t.Errorf("%s, %s: %.3f, want %.3f", f.Name, f.Curve, f.Reached, bar)
		}
	}
}

// Nobody is cheaper than a planner that knows the curve, and a run with any deadline spends at most
// what the fastest option costs, plus its switches.
func TestTrain_CostsAtLeastAsMuchAsAKnownCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		front := cost.Front(Networks()[random.IntN(3)].Options())
		curve := randomCurve(random, cost.FamilyHyperbolic)
		fastest := front[len(front)-1].Seconds
		deadline := float64(curve.epochs) * fastest * (1 + 20*random.Float64())
		r := curve.train(random, front, deadline)
		if r.isKept && r.costRatio < 1-1e-9 {
			t.Errorf("a kept deadline costs %.3f of the least possible", r.costRatio)
		}
	}
}

func TestKnownCost_InterpolatesTheFront(t *testing.T) {
	front := []cost.TrialOption{{Seconds: 10, Cost: 1}, {Seconds: 5, Cost: 3}}
	for _, c := range []struct{ deadline, want float64 }{{200, 10}, {100, 10}, {75, 20}, {50, 30}, {10, 30}} {
		if got := knownCost(front, 10, c.deadline); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("knownCost within %g s = %g, want %g", c.deadline, got, c.want)
		}
	}
}
