package regress

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Gaussian is a Gaussian process (Rasmussen, Williams 2006, chapters 2.2, 2.7 and 5.4): a linear
// trend, and a smooth correction that vanishes far from the examples. The correction at x is the
// sum over points p of
//
//	Weights[p] * exp(-1/2 sum over inputs i of ((x_i - Points[p][i]) / Lengths[i])^2)
//
// where Weights include the amplitude.
type Gaussian struct {
	Trend  Law     `json:"trend"`
	Inputs []Input `json:"inputs"`
	// Lengths are the length scales of the inputs, in their standard deviations.
	Lengths []float64 `json:"lengths"`
	// Amplitude of the correction and Noise of one measurement, as standard
	// deviations in the unit of the fit.
	Amplitude float64 `json:"amplitude"`
	Noise     float64 `json:"noise"`
	// Share is the factor of the correction that the monotone signs allow, 0 to 1.
	Share   float64     `json:"share"`
	Points  [][]float64 `json:"points"`
	Weights []float64   `json:"weights"`

	flat []float64 // Points divided by Lengths, one after the other
}

// predict predicts in the unit of the fit.
func (g *Gaussian) predict(row []float64) float64 {
	return g.Trend.predict(row) + g.correction(row)
}

func (g *Gaussian) correction(row []float64) float64 {
	var values [maxInputs]float64
	fill(g.Inputs, row, &values)
	n := len(g.Inputs)
	for i := range n {
		values[i] /= g.Lengths[i]
	}
	y := 0.0
	for p, w := range g.Weights {
		far := 0.0
		for i, x := range g.flat[p*n : p*n+n] {
			far += (values[i] - x) * (values[i] - x)
		}
		y += w * math.Exp(-far/2)
	}
	return y
}

// prepare computes data for predictions that the manifest does not contain.
func (g *Gaussian) prepare() {
	g.flat = make([]float64, 0, len(g.Points)*len(g.Inputs))
	for _, p := range g.Points {
		for i, x := range p {
			g.flat = append(g.flat, x/g.Lengths[i])
		}
	}
}

// check checks the process of a manifest, and prepares it.
func (g *Gaussian) check(features []FeatureRange) error {
	if err := g.Trend.check(features); err != nil {
		return fmt.Errorf("gaussian: %w", err)
	}
	if len(g.Inputs) > maxInputs || len(g.Lengths) != len(g.Inputs) ||
		len(g.Points) != len(g.Weights) {
		return fmt.Errorf("gaussian: %d inputs, %d lengths, %d points, %d weights", len(g.Inputs),
			len(g.Lengths), len(g.Points), len(g.Weights))
	}
	for i := range g.Inputs {
		if err := g.Inputs[i].check(features); err != nil {
			return fmt.Errorf("gaussian: input %d: %w", i, err)
		}
		if l := g.Lengths[i]; !(l > 1e-6) || !finite(l) {
			return fmt.Errorf("gaussian: length %d is %g, want above 1e-6", i, l)
		}
	}
	for p, point := range g.Points {
		if len(point) != len(g.Inputs) || !finite(g.Weights[p]) ||
			slices.ContainsFunc(point, func(x float64) bool {
				return !(math.Abs(x) < 1e100)
			}) {
			return fmt.Errorf("gaussian: point %d has %d numbers %g of weight %g", p, len(point),
				point, g.Weights[p])
		}
	}
	g.prepare()
	return nil
}

// GaussianOptions are the options of a Gaussian process.
type GaussianOptions struct {
	// Starts of the search for the lengths; 0 means 3.
	Starts int `json:"starts"`
	// Transform is None if empty.
	Transform Transform `json:"transform"`
	// Seed of the folds.
	Seed uint64 `json:"seed"`
	// Folds, MinExamples, MinSettings and Threads are as in ForestOptions.
	Folds       int `json:"folds"`
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	Threads     int `json:"-"`
	// Progress is called with the number of completed and planned fits.
	Progress func(done, planned int) `json:"-"`
}

const (
	// MaxGaussian is the maximum number of examples of a Gaussian process: the time of a fit grows
	// with their cube, file and predictions with their number.
	MaxGaussian = 2000
	// maxSearched is the maximum number of examples from which the lengths are estimated; one
	// evaluation takes 2 ms.
	maxSearched = 128
)

// The priors guide the search for few examples: a length is about 2 standard deviations of its
// input within a factor of e, the noise a tenth of the target's deviation, and a trend moves by
// about its deviation.
const (
	lengthPrior, lengthWidth = 2.0, 1.0
	noisePrior, noiseWidth   = 0.1, 1.0
	trendPrior               = 1.5
	// jitter keeps the covariance of equal examples positive.
	jitter = 1e-8
)

// FitGaussian fits a Gaussian process by the largest marginal likelihood and calibrates it as
// FitForest does. It suits up to about 500 examples; more than MaxGaussian are ErrBadExamples.
// Where the process violates a monotone sign, it gets constraints; if these do not suffice, its
// correction is weakened.
func FitGaussian(ctx context.Context, d *Dataset, o GaussianOptions) (*Regressor, error) {
	s, err := resolveBaseOptions(o.Transform, o.Folds, o.MinExamples, o.MinSettings, o.Threads,
		o.Seed)
	if err == nil && o.Starts < 0 {
		err = fmt.Errorf("%w: starts is %d, want 0 or more", ErrBadOptions, o.Starts)
	}
	if err == nil && d.Len() > MaxGaussian {
		err = fmt.Errorf("%w: %d are too many for a Gaussian process, want at most %d",
			ErrBadExamples, d.Len(), MaxGaussian)
	}
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	s.progress = o.Progress
	o.Transform, o.Folds = s.Transform, s.Folds
	if o.Starts == 0 {
		o.Starts = 3
	}
	r, err := fitBase(ctx, d, s, func(train *Dataset) (baseFit, error) { return o.fit(ctx, train) })
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	r.Manifest.Family, r.Manifest.GaussianFit = FamilyGaussian, &o
	return r, nil
}

func (o *GaussianOptions) fit(ctx context.Context, d *Dataset) (baseFit, error) {
	y := o.Transform.apply(d.Target)
	p, err := newGaussianProcess(d, y)
	if err != nil {
		return baseFit{}, err
	}
	theta, err := p.sample(maxSearched).search(ctx, o.Starts)
	if err != nil {
		return baseFit{}, err
	}
	g := p.monotonePosterior(d, theta)
	return baseFit{base: g, gaussian: g}, nil
}

const (
	// monotoneRounds is the number of rounds in which constraints are added, monotoneSteps the
	// number of constraints per round.
	monotoneRounds, monotoneSteps = 12, 6
	// monotoneNoise is the tolerance of a constraint, in deviations of the target.
	monotoneNoise = 1e-3
)

// monotonePosterior returns the posterior that obeys the monotone signs. Where it violates them, a
// constraint is added: a measurement that the step is level (after Riihimäki, Vehtari 2010, with
// differences instead of derivatives).
func (p *gaussianProcess) monotonePosterior(d *Dataset, theta []float64) *Gaussian {
	walk := newSlopes(d)
	var steps []wrongStep
	g := p.posterior(theta, steps)
	for range monotoneRounds {
		wrong := walk.worst(g, monotoneSteps)
		if len(wrong) == 0 {
			g.Share = 1
			return g
		}
		steps = append(steps, wrong...)
		g = p.posterior(theta, steps)
	}
	g.weaken(walk)
	return g
}

// weaken scales the correction down until it obeys the monotone signs.
func (g *Gaussian) weaken(walk *slopes) {
	for f := walk.firstWrong(&g.Trend); f >= 0; f = walk.firstWrong(&g.Trend) {
		for k, term := range g.Trend.Terms {
			if g.Trend.Inputs[term[0]].Feature == f {
				g.Trend.Coefficients[k] = 0
			}
		}
	}
	if g.Share = walk.share(&g.Trend, correction{g}); g.Share < 1 {
		for p := range g.Weights {
			g.Weights[p] *= g.Share
		}
	}
}

type correction struct{ g *Gaussian }

func (c correction) predict(row []float64) float64 { return c.g.correction(row) }
