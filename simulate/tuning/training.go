package tuning

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"courier/simulate/figures"
	"courier/tune/halving"
)

// lossCurve is a synthetic training until a target loss.
type lossCurve struct {
	family string
	epochs int // until the target
	loss   func(epoch float64) float64
}

// Ranges of the synthetic curves, and what a planner knows before the first epochs.
const (
	leastEpochs, mostEpochs = 40, 200
	lossNoise               = 0.02 // standard deviation, relative to the loss
	estimateSpread          = 0.3  // standard deviation of the logarithm of the first estimate
	epochLimit              = 3    // largest number of epochs by the first estimate
	warmUpSeconds           = 20   // of new workers, while the old ones still run
	deadlineConfidence      = 0.95
)

// randomCurve returns a curve that falls from 1.5 to 3.5 to a floor of 0.05 to 0.3.
func randomCurve(random *rand.Rand, family string) lossCurve {
	c := lossCurve{family: family, epochs: leastEpochs + random.IntN(mostEpochs-leastEpochs+1)}
	first, floor := 1.5+2*random.Float64(), 0.05+0.25*random.Float64()
	if family == familyHyperbolic {
		offset := 1 + random.Float64()*float64(c.epochs)/5
		scale := (first - floor) * (1 + offset)
		c.loss = func(epoch float64) float64 { return scale/(epoch+offset) + floor }
		return c
	}
	constant := float64(c.epochs) / (1.5 + 2*random.Float64()) // in epochs
	c.loss = func(epoch float64) float64 { return (first-floor)*math.Exp((1-epoch)/constant) + floor }
	return c
}

// observed returns the noisy losses of the first epochs.
func (c *lossCurve) observed(random *rand.Rand, epochs int) (losses []float64) {
	for e := 1; e <= epochs; e++ {
		losses = append(losses, c.loss(float64(e))*(1+lossNoise*random.NormFloat64()))
	}
	return losses
}

// forecastError returns the error of the predicted remaining epochs, relative to the true ones,
// after a part of the epochs.
func (c *lossCurve) forecastError(random *rand.Rand, part float64) float64 {
	done := int(math.Round(part * float64(c.epochs)))
	estimate := float64(c.epochs) * math.Exp(estimateSpread*random.NormFloat64())
	f, ok := forecastLoss(c.observed(random, done), c.loss(float64(c.epochs)), epochLimit*estimate,
		2*deadlineConfidence-1)
	if !ok {
		return 1
	}
	return math.Abs(f.Median-float64(c.epochs)) / float64(c.epochs-done)
}

// deadlineRun is a simulated training under a deadline.
type deadlineRun struct {
	isKept    bool
	costRatio float64 // to a planner that knows the curve
	saved     float64 // of the cost of a static option, as a ratio
}

// train runs a training under a deadline in seconds, with a forecast after each epoch.
func (c *lossCurve) train(random *rand.Rand, front []halving.TrialOption, deadline float64) deadlineRun {
	losses := c.observed(random, c.epochs)
	target := c.loss(float64(c.epochs))
	estimate := float64(c.epochs) * math.Exp(estimateSpread*random.NormFloat64())
	spread := math.Exp(1.645 * estimateSpread)
	prior := lossForecast{Median: estimate, Low: estimate / spread, High: estimate * spread}
	view := trainingView{Left: deadline, Option: -1, Forecast: prior}
	static := staticOption(front, prior.High, deadline)
	spent, run := 0.0, deadlineRun{}
	for ; view.Done < c.epochs; view.Done++ {
		f, ok := forecastLoss(losses[:view.Done], target, epochLimit*estimate, 2*deadlineConfidence-1)
		if ok {
			view.Forecast = f
		} else if view.Forecast.Median <= float64(view.Done) {
			view.Forecast.Median = float64(view.Done + 1) // it has not arrived yet
		}
		p := replanTraining(front, view)
		if view.Option >= 0 && p.Option != view.Option {
			spent += view.SwitchCost
		}
		view.Option, view.PlannedEpochs = p.Option, p.PlannedEpochs
		o := front[p.Option]
		view.SwitchCost = warmUpSeconds * o.Cost / o.Seconds
		view.Left -= o.Seconds
		spent += o.Cost
	}
	run.isKept = view.Left >= -1e-9
	run.costRatio = spent / knownCost(front, float64(c.epochs), deadline)
	run.saved = 1 - spent/(float64(c.epochs)*static.Cost)
	return run
}

// staticOption returns the option of a training that is planned once, before it starts: the cheapest
// one that meets the deadline with the upper bound of the estimated epochs, or else the fastest.
func staticOption(front []halving.TrialOption, epochs, deadline float64) halving.TrialOption {
	for _, o := range front {
		if epochs*o.Seconds <= deadline {
			return o
		}
	}
	return front[len(front)-1]
}

// knownCost returns the smallest cost of a number of epochs within a deadline: on a convex front, that
// of its two neighbouring options which together use all of the time.
func knownCost(front []halving.TrialOption, epochs, deadline float64) float64 {
	seconds := deadline / epochs
	if seconds >= front[0].Seconds {
		return epochs * front[0].Cost
	}
	for k := 1; k < len(front); k++ {
		if a, b := front[k-1], front[k]; seconds >= b.Seconds {
			part := (seconds - b.Seconds) / (a.Seconds - b.Seconds)
			return epochs * (part*a.Cost + (1-part)*b.Cost)
		}
	}
	return epochs * front[len(front)-1].Cost
}

// trainingRuns is the number of simulated trainings for each prediction; those with a deadline, which
// predict after each epoch, are a quarter of it.
const trainingRuns = 400

// publishedTrainingCost is the reduction of the cost of trainings against static resources (Wu et
// al., IPDPS 2023, abstract).
const publishedTrainingCost = 0.38

// addTrainings adds simulated trainings with synthetic loss curves: how well their end is predicted,
// and how they keep their deadlines. All targets but that of the saved cost are ours.
func addTrainings(f *figures.Comparisons, runs int) {
	for _, family := range []string{familyHyperbolic, familyExponential} {
		for _, c := range []struct{ part, target float64 }{{0.2, 0.2}, {0.5, 0.1}} {
			random := rand.New(rand.NewPCG(11, 12))
			var errors []float64
			for range runs {
				curve := randomCurve(random, family)
				errors = append(errors, curve.forecastError(random, c.part))
			}
			slices.Sort(errors)
			name := fmt.Sprintf("error of the remaining epochs after %.0f %%, median", 100*c.part)
			f.Begin(fmt.Sprintf("%s loss curve, %d trainings", family, runs), "")
			f.Add(figures.Limit, name, figures.Bar(c.target), errors[len(errors)/2])
		}
		addDeadlines(f, rand.New(rand.NewPCG(13, 14)), family, runs/4)
	}
}

// addDeadlines adds trainings on the functions of the networks. The deadline lies between the
// fastest and the cheapest option, at 15 to 80 % of the way on a logarithmic scale, where the costs
// differ.
func addDeadlines(f *figures.Comparisons, random *rand.Rand, family string, runs int) {
	networks := Networks()
	var kept, ratios, saved []float64
	for i := range runs {
		front := halving.Front(networks[i%len(networks)].Options())
		curve := randomCurve(random, family)
		slowest, fastest := front[0].Seconds, front[len(front)-1].Seconds
		part := 0.15 + 0.65*random.Float64()
		r := curve.train(random, front, float64(curve.epochs)*fastest*math.Pow(slowest/fastest, part))
		isKept := 0.0
		if r.isKept {
			isKept = 1
		}
		kept, ratios, saved = append(kept, isKept), append(ratios, r.costRatio-1), append(saved, r.saved)
	}
	f.Begin(fmt.Sprintf("%s loss curve, %d trainings with a deadline", family, runs), "")
	f.Add(figures.Level, "deadlines kept at confidence 0.95", figures.Bar(0.95), mean(kept))
	f.Add(figures.Limit, "cost above a planner that knows the curve, mean", figures.Bar(0.15), mean(ratios))
	f.Add(figures.Reduction, "training cost against a static option, mean, published",
		figures.Bar(publishedTrainingCost), mean(saved))
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// ReproduceAll simulates tunings and trainings, and compares greedy plans with all plans.
func ReproduceAll() (*figures.Comparisons, error) {
	f, err := Reproduce()
	if err != nil {
		return nil, err
	}
	if err := addGreedy(f); err != nil {
		return nil, err
	}
	addTrainings(f, trainingRuns)
	return f, nil
}
