package tuning

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"courier/policy/cost"
	"courier/simulate/figures"
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
	if family == cost.FamilyHyperbolic {
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
	f, ok := cost.ForecastLoss(c.observed(random, done), c.loss(float64(c.epochs)), epochLimit*estimate,
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
	switches  int
}

// train runs a training under a deadline in seconds, with a forecast after each epoch.
func (c *lossCurve) train(random *rand.Rand, front []cost.TrialOption, deadline float64) deadlineRun {
	losses := c.observed(random, c.epochs)
	target := c.loss(float64(c.epochs))
	estimate := float64(c.epochs) * math.Exp(estimateSpread*random.NormFloat64())
	spread := math.Exp(1.645 * estimateSpread)
	prior := cost.LossForecast{Median: estimate, Low: estimate / spread, High: estimate * spread}
	view := cost.TrainingView{Left: deadline, Option: -1, Forecast: prior}
	spent, run := 0.0, deadlineRun{}
	for ; view.Done < c.epochs; view.Done++ {
		f, ok := cost.ForecastLoss(losses[:view.Done], target, epochLimit*estimate, 2*deadlineConfidence-1)
		if ok {
			view.Forecast = f
		} else if view.Forecast.Median <= float64(view.Done) {
			view.Forecast.Median = float64(view.Done + 1) // it has not arrived yet
		}
		p := cost.ReplanTraining(front, view)
		if view.Option >= 0 && p.Option != view.Option {
			run.switches++
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
	return run
}

// knownCost returns the smallest cost of a number of epochs within a deadline: on a convex front, that
// of its two neighbouring options which together use all of the time.
func knownCost(front []cost.TrialOption, epochs, deadline float64) float64 {
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

// TrainingFigure is a figure of trainings that are planned again as their loss falls.
type TrainingFigure struct {
	Name    string  `json:"name"`
	Curve   string  `json:"curve"` // family of the loss curves
	Target  float64 `json:"target"`
	Reached float64 `json:"reached"`
	IsMet   bool    `json:"met"`
}

// trainingRuns is the number of simulated trainings for each prediction; those with a deadline, which
// predict after each epoch, are a quarter of it.
const trainingRuns = 400

// Trainings simulates trainings with synthetic loss curves: how well their end is predicted, and how
// they keep their deadlines. The targets are ours; CE-scaling publishes none of these figures.
func Trainings() []TrainingFigure { return trainings(trainingRuns) }

func trainings(runs int) (reached []TrainingFigure) {
	for _, family := range []string{cost.FamilyHyperbolic, cost.FamilyExponential} {
		for _, c := range []struct {
			part, target float64
			name         string
		}{
			{0.2, 0.2, "error of the remaining epochs after 20 % (median)"},
			{0.5, 0.1, "error of the remaining epochs after 50 % (median)"},
		} {
			random := rand.New(rand.NewPCG(11, 12))
			var errors []float64
			for range runs {
				curve := randomCurve(random, family)
				errors = append(errors, curve.forecastError(random, c.part))
			}
			slices.Sort(errors)
			median := errors[len(errors)/2]
			reached = append(reached, TrainingFigure{c.name, family, c.target, median, median <= c.target})
		}
		reached = append(reached, deadlineFigures(rand.New(rand.NewPCG(13, 14)), family, runs/4)...)
	}
	return reached
}

// deadlineFigures simulates trainings on the functions of the networks. The deadline lies between
// the fastest and the cheapest option, at 15 to 80 % of the way on a logarithmic scale, where the
// costs differ.
func deadlineFigures(random *rand.Rand, family string, runs int) []TrainingFigure {
	networks := Networks()
	kept, ratio := 0, 0.0
	for i := range runs {
		front := cost.Front(networks[i%len(networks)].Options())
		curve := randomCurve(random, family)
		slowest, fastest := front[0].Seconds, front[len(front)-1].Seconds
		part := 0.15 + 0.65*random.Float64()
		r := curve.train(random, front, float64(curve.epochs)*fastest*math.Pow(slowest/fastest, part))
		if r.isKept {
			kept++
		}
		ratio += (r.costRatio - 1) / float64(runs)
	}
	ratioKept := float64(kept) / float64(runs)
	return []TrainingFigure{
		{"deadlines kept at confidence 0.95", family, 0.95, ratioKept, ratioKept >= 0.95},
		{"cost above a planner that knows the curve (mean)", family, 0.15, ratio, ratio <= 0.15},
	}
}

// CEFigures are the figures of tunings and of trainings.
type CEFigures struct {
	figures.Comparisons
	Trainings []TrainingFigure `json:"trainings"`
}

// ReproduceAll simulates tunings and trainings.
func ReproduceAll() (*CEFigures, error) {
	tunings, err := Reproduce()
	if err != nil {
		return nil, err
	}
	return &CEFigures{*tunings, Trainings()}, nil
}

// WriteText writes the figures as two tables.
func (f *CEFigures) WriteText(out io.Writer) error {
	if err := f.Comparisons.WriteText(out); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\ntraining with re-planning\tloss curve\ttarget\treached\tmet\t")
	for _, x := range f.Trainings {
		isMet := map[bool]string{true: "yes", false: "no"}[x.IsMet]
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f\t%s\t\n", x.Name, x.Curve, x.Target, x.Reached, isMet)
	}
	return t.Flush()
}
