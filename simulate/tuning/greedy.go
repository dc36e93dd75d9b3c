package tuning

import (
	"fmt"
	"math"
	"math/rand/v2"

	"courier/policy/cost"
	"courier/simulate/figures"
)

const greedyCases = 1000

// addGreedy adds how far greedy plans are from the fastest of all plans within the same budget, in
// random tunings of up to four stages and twelve options.
func addGreedy(f *figures.Comparisons) error {
	random := rand.New(rand.NewPCG(1, 2))
	beyond, worst := 0.0, 0.0
	for range greedyCases {
		gap, step, err := greedyGap(random)
		if err != nil {
			return err
		}
		if gap > step+1e-9 {
			beyond++
		}
		if step > 0 {
			worst = max(worst, gap/step)
		}
	}
	f.Begin(fmt.Sprintf("%d random tunings of up to 4 stages and 12 options", greedyCases), "")
	f.Add(figures.Count, "greedy plans that are slower than the fastest of all by more than a step", figures.Bar(0), beyond)
	f.Add(figures.Limit, "largest difference of a greedy plan from the fastest of all, of a step", figures.Bar(1), worst)
	return nil
}

// greedyGap returns the seconds by which the greedy plan of a random tuning is slower than the
// fastest of all plans within its budget, and the largest step of a stage to the next option.
func greedyGap(random *rand.Rand) (gap, step float64, err error) {
	options := make([]cost.TrialOption, 1+random.IntN(12))
	for i := range options {
		options[i] = cost.TrialOption{Seconds: 1 + 99*random.Float64(), Cost: 1 + 9*random.Float64()}
	}
	front := cost.Front(options)
	stages := make([]cost.Stage, 1+random.IntN(4))
	for i := range stages {
		stages[i] = cost.Stage{Trials: 1 << random.IntN(8), Epochs: 1 + random.IntN(4)}
		for k := 1; k < len(front); k++ {
			step = max(step, float64(stages[i].Epochs)*(front[k-1].Seconds-front[k].Seconds))
		}
	}
	fronts := cost.FrontsOf(front, stages)
	budget := fronts.Cheapest().Cost * (1 + 3*random.Float64())
	plan, err := fronts.FastestWithin(budget)
	if err != nil {
		return 0, 0, err
	}
	return plan.Seconds - fastest(front, stages, budget), step, nil
}

// fastest returns the seconds of the fastest of all plans within a budget; infinity if none is.
func fastest(front []cost.TrialOption, stages []cost.Stage, budget float64) float64 {
	if budget < 0 {
		return math.Inf(1)
	}
	if len(stages) == 0 {
		return 0
	}
	s, least := stages[0], math.Inf(1)
	for _, o := range front {
		epochs := float64(s.Epochs)
		rest := fastest(front, stages[1:], budget-float64(s.Trials)*epochs*o.Cost)
		least = min(least, epochs*o.Seconds+rest)
	}
	return least
}
