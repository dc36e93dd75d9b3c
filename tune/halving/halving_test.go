package halving_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"courier/tune/halving"
)

func randomOptions(random *rand.Rand) []halving.TrialOption {
	options := make([]halving.TrialOption, 1+random.IntN(12))
	for i := range options {
		options[i] = halving.TrialOption{Seconds: 1 + 99*random.Float64(), Cost: 1 + 9*random.Float64()}
	}
	return options
}

// each calls do with every combination of options.
func each(options, stages int, do func([]int)) {
	chosen := make([]int, stages)
	for {
		do(slices.Clone(chosen))
		i := 0
		for ; i < stages; i++ {
			if chosen[i]++; chosen[i] < options {
				break
			}
			chosen[i] = 0
		}
		if i == stages {
			return
		}
	}
}

// The greedy plan is at most one step worse than the best of all plans on the front, in 1,000 random
// cases of up to four stages and twelve options.
func TestPlans_AreAtMostOneStepFromTheOptimum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 1000 {
		front := halving.Front(randomOptions(random))
		stages := make([]halving.Stage, 1+random.IntN(4))
		for i := range stages {
			stages[i] = halving.Stage{Trials: 1 << random.IntN(8), Epochs: 1 + random.IntN(4)}
		}
		fronts := halving.FrontsOf(front, stages)
		cheapest := fronts.Cheapest()
		fastest := fronts.Fastest()
		part := random.Float64()
		budget := cheapest.Cost + part*(fastest.Cost-cheapest.Cost)
		deadline := fastest.Seconds + part*(cheapest.Seconds-fastest.Seconds)

		largestGain, largestCost := 0.0, 0.0
		for k := 1; k < len(front); k++ {
			for _, s := range stages {
				largestGain = max(largestGain, float64(s.Epochs)*(front[k-1].Seconds-front[k].Seconds))
				largestCost = max(largestCost, float64(s.Epochs*s.Trials)*(front[k].Cost-front[k-1].Cost))
			}
		}
		leastSeconds, leastCost := math.Inf(1), math.Inf(1)
		each(len(front), len(stages), func(chosen []int) {
			p := fronts.PlanOf(chosen)
			if p.Cost <= budget {
				leastSeconds = min(leastSeconds, p.Seconds)
			}
			if p.Seconds <= deadline {
				leastCost = min(leastCost, p.Cost)
			}
		})
		got, err := halving.FrontsOf(front, stages).FastestWithin(budget)
		if err != nil || got.Cost > budget || got.Seconds > leastSeconds+largestGain+1e-9 {
			t.Fatalf("case %d: %+v, %v within %g; the optimum takes %g s, a step at most %g s",
				n, got, err, budget, leastSeconds, largestGain)
		}
		got, err = halving.FrontsOf(front, stages).CheapestWithin(deadline + 1e-9)
		if err != nil || got.Seconds > deadline+1e-9 || got.Cost > leastCost+largestCost+1e-9 {
			t.Fatalf("case %d: %+v, %v within %g s; the optimum costs %g, a step at most %g",
				n, got, err, deadline, leastCost, largestCost)
		}
	}
}

func TestFront_IsConvexAndUnbeaten(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		options := randomOptions(random)
		front := halving.Front(options)
		slope := math.Inf(1)
		for k := 1; k < len(front); k++ {
			a, b := front[k-1], front[k]
			next := (a.Seconds - b.Seconds) / (b.Cost - a.Cost)
			if !(b.Cost > a.Cost) || !(b.Seconds < a.Seconds) || next > slope+1e-9 {
				t.Fatalf("front %v is not convex at %d", front, k)
			}
			slope = next
		}
		for _, o := range options {
			for _, f := range front {
				if o.Seconds < f.Seconds && o.Cost < f.Cost {
					t.Fatalf("%v beats %v of the front", o, f)
				}
			}
		}
	}
}

func TestPlans_NameTheSmallestBound(t *testing.T) {
	front := halving.Front([]halving.TrialOption{{Seconds: 10, Cost: 1}, {Seconds: 5, Cost: 3}})
	stages := halving.Stages(4, 2, 1) // 4, 2 and 1 trials
	if len(stages) != 3 || stages[2].Trials != 1 {
		t.Fatalf("stages = %v, want 4, 2 and 1 trials", stages)
	}
	if _, err := halving.FrontsOf(front, stages).FastestWithin(6); err == nil ||
		!strings.Contains(err.Error(), "want at least 7") {
		t.Errorf("budget of 6: %v, want the smallest one, 7", err)
	}
	if _, err := halving.FrontsOf(front, stages).CheapestWithin(14); err == nil ||
		!strings.Contains(err.Error(), "want at least 15 s") {
		t.Errorf("deadline of 14 s: %v, want the shortest one, 15 s", err)
	}
	// The stage with one trial is the cheapest to speed up.
	got, err := halving.FrontsOf(front, stages).FastestWithin(9)
	if err != nil || !slices.Equal(got.Options, []int{0, 0, 1}) || got.Seconds != 25 || got.Cost != 9 {
		t.Errorf("budget of 9: %+v, %v, want the last stage fast, 25 s", got, err)
	}
	if _, err := halving.FrontsOf(nil, stages).FastestWithin(9); err == nil {
		t.Error("no options are accepted")
	}
}

// plansOf plans for options, stages and a bound that are read from bytes, and checks what holds for
// all of them.
func plansOf(t *testing.T, data []byte) {
	t.Helper()
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	number := func() float64 {
		special := []float64{0, math.NaN(), math.Inf(1), -1, 1e300}
		if b := next(); int(b) < len(special) {
			return special[b]
		} else {
			return float64(b) * float64(next()+1)
		}
	}
	var options []halving.TrialOption
	for range next() % 12 {
		options = append(options, halving.TrialOption{Seconds: number(), Cost: number()})
	}
	front := halving.Front(options)
	slices.Reverse(options)
	if again := halving.Front(options); !slices.Equal(front, again) {
		t.Fatalf("fronts %v and %v of the same options", front, again)
	}
	stages := halving.Stages(int(next()), 2+int(next()%3), 1+int(next()%5))
	bound := 1000 * number()

	p, err := halving.FrontsOf(front, stages).FastestWithin(bound)
	if err == nil && !(p.Cost <= bound && p.Seconds > 0) {
		t.Fatalf("plan %+v within the budget %g", p, bound)
	}
	p, err = halving.FrontsOf(front, stages).CheapestWithin(bound)
	if err == nil && !(p.Seconds <= bound && p.Cost >= 0) {
		t.Fatalf("plan %+v within the deadline %g", p, bound)
	}
}

func FuzzPlans(f *testing.F) {
	f.Add([]byte("some options, stages and a bound"))
	f.Add([]byte{0, 0, 1})
	f.Fuzz(plansOf)
}

func TestPlans_KeepTheirBoundsOnRandomInput(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		data := make([]byte, random.IntN(120))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		plansOf(t, data)
	}
}
