package evidence

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// inputs is the number of features of the law and the process: log2 batch size, log2 CPUs,
// concurrent jobs / 2, processes per core, foreign CPU and foreign IO-wait in quarters of the node.
const inputs = 6

// foreignScale scales foreign loads, which are at most 1, to the lengths of the search.
const foreignScale = 4

// point is a configuration in the features of the process.
type point struct {
	x    [inputs]float64
	node string // node type
}

func pointOf(c *Configuration) point {
	return point{[inputs]float64{
		math.Log2(float64(c.BatchSize)), math.Log2(float64(c.CPUs)), c.ConcurrentJobs / 2, c.ProcessesPerCore,
		foreignScale * c.ForeignCPURatio, foreignScale * c.ForeignIOWaitRatio,
	}, c.NodeType}
}

// Hyperparameters of the law and the Gaussian process of one subject, which maximize marginal
// likelihood times priors. All are above 0.
type Hyperparameters struct {
	// Balance is the batch size at which the cost per iteration equals the cost per sample on one CPU.
	Balance float64 `json:"balance"`
	// Amplitude of the process, and NodeAmplitude of the process of each node type, as standard
	// deviations of log seconds.
	Amplitude     float64 `json:"amplitude"`
	NodeAmplitude float64 `json:"node_amplitude"`
	// Lengths over which features matter, in their units.
	Lengths [inputs]float64 `json:"lengths"`
	// Effect is the standard deviation of the configuration effect.
	Effect float64 `json:"effect"`
}

// terms is the number of terms of the law: intercept, cost of samples and iterations, and the
// loads.
const terms = inputs

// foreignVariance is the variance of a coefficient of 1 for a foreign load of the whole node.
const foreignVariance = 1. / (foreignScale * foreignScale)

// The prior of the law's coefficients. The coefficient of the costs is 1, because the time of an
// epoch is proportional to 1/CPUs + balance/batch: CPUs share the samples, not the iterations. The intercept is
// much less certain than the loads, so that a load which was always the same explains hardly any of it.
var (
	lawMean     = [terms]float64{0, 1}
	lawVariance = [terms]float64{1000, 0.25, 1, 1, foreignVariance, foreignVariance}
)

// law returns the regressors of the law at a point.
func (h *Hyperparameters) law(p *point) [terms]float64 {
	row := [terms]float64{1, math.Log(math.Exp2(-p.x[1]) + h.Balance*math.Exp2(-p.x[0]))}
	copy(row[2:], p.x[2:])
	return row
}

// observations are the data of the process: the log paces of the configurations, and the variances of
// their estimates.
type observations struct {
	points   []point
	several  bool // there are several node types
	y, noise []float64
}

// timeProcess is the Gaussian process of one subject, conditioned on its configurations.
type timeProcess struct {
	Hyperparameters
	observations
	laws          [][terms]float64
	factors       mat.Cholesky  // of the covariance K
	inverse       mat.SymDense  // of K; set by newGaussianProcess
	weights       *mat.VecDense // K^-1 (y - H m)
	logLikelihood float64       // marginal, up to a constant
}

// near returns the Matérn kernel of two points.
func (h *Hyperparameters) near(p, q *point) float64 {
	far := 0.0
	for f, length := range h.Lengths {
		z := (p.x[f] - q.x[f]) / length
		far += z * z
	}
	return matern52(far)
}

// covariance returns the covariance of law and process at two points with a Matérn kernel.
func (g *timeProcess) covariance(near float64, sameNode bool, a, b *[terms]float64) float64 {
	k := g.Amplitude * g.Amplitude * near
	if g.several && sameNode {
		k += 1 + g.NodeAmplitude*g.NodeAmplitude*near
	}
	for t, v := range lawVariance {
		k += a[t] * v * b[t]
	}
	return k
}

// prior returns the mean of the law at a point without data.
func prior(law *[terms]float64) float64 { return floats.Dot(law[:], lawMean[:]) }

// kernels returns the Matérn kernels of the observed points.
func (o *observations) kernels(h *Hyperparameters) *mat.SymDense {
	n := len(o.points)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			k.SetSym(i, j, h.near(&o.points[i], &o.points[j]))
		}
	}
	return k
}

// condition conditions the process on observations with these kernels; false if their covariance is not
// positive definite.
func condition(h Hyperparameters, o observations, near *mat.SymDense) (*timeProcess, bool) {
	n := len(o.points)
	g := &timeProcess{Hyperparameters: h, observations: o, weights: mat.NewVecDense(n, nil)}
	k, residual := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range o.points {
		g.laws = append(g.laws, h.law(&o.points[i]))
		residual.SetVec(i, o.y[i]-prior(&g.laws[i]))
		for j := range i {
			same := o.points[i].node == o.points[j].node
			k.SetSym(j, i, g.covariance(near.At(j, i), same, &g.laws[i], &g.laws[j]))
		}
		k.SetSym(i, i, g.covariance(1, true, &g.laws[i], &g.laws[i])+h.Effect*h.Effect+o.noise[i])
	}
	if !g.factors.Factorize(k) || g.factors.SolveVecTo(g.weights, residual) != nil {
		return nil, false
	}
	g.logLikelihood = -mat.Dot(residual, g.weights)/2 - g.factors.LogDet()/2
	return g, true
}

// newGaussianProcess conditions the process on observations, ready for predictions.
func newGaussianProcess(h Hyperparameters, o observations) (*timeProcess, bool) {
	g, ok := condition(h, o, o.kernels(&h))
	return g, ok && g.factors.InverseTo(&g.inverse) == nil
}

// predict returns mean and variance for a configuration that never ran.
func (g *timeProcess) predict(p *point) (mean, variance float64) {
	law := g.law(p)
	k := mat.NewVecDense(len(g.points), nil)
	for i := range g.points {
		q := &g.points[i]
		k.SetVec(i, g.covariance(g.near(p, q), p.node == q.node, &law, &g.laws[i]))
	}
	variance = g.covariance(1, true, &law, &law) + g.Effect*g.Effect - mat.Inner(k, &g.inverse, k)
	return prior(&law) + mat.Dot(k, g.weights), max(variance, 1e-12)
}

// posterior returns mean and variance of observation i without its noise. Its covariance with the
// observations is column i of K less the noise, so both follow from K^-1.
func (g *timeProcess) posterior(i int) (mean, variance float64) {
	noise := g.noise[i]
	return g.y[i] - noise*g.weights.AtVec(i), max(noise-noise*noise*g.inverse.At(i, i), 1e-12)
}

// matern52 is the Matérn kernel of smoothness 5/2 at a squared scaled distance (Rasmussen, Williams
// 2006, equation 4.17).
func matern52(squared float64) float64 {
	r := math.Sqrt(5 * squared)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// axis is a hyperparameter of the search, and the values that are tried. Its prior is normal in the logarithm.
type axis struct {
	value       *float64
	mean, width float64
	grid        []float64
}

// search is a coordinate search for the hyperparameters that maximize marginal likelihood times priors.
type search struct {
	observations
	Hyperparameters
	axes [][]axis // those of a group are searched together

	near   *mat.SymDense // kernels of the lengths nearOf
	nearOf [inputs]float64

	best      Hyperparameters
	posterior float64 // of the best ones, logarithmic
}

// newSearch returns a search that begins at the means of the priors. The amplitude is searched together
// with the effect: each explains what the other leaves, so a search along one alone would not move.
func newSearch(o observations) *search {
	s := &search{observations: o}
	h := &s.Hyperparameters
	*h = Hyperparameters{Balance: 128, Amplitude: .12, NodeAmplitude: .12, Effect: .012}
	amplitudes := []float64{.03, .06, .12, .25, .5, 1}
	costs := []float64{.25, .5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}
	s.axes = [][]axis{
		{{&h.Balance, 128, 5 * math.Ln2, costs}},
		{{&h.Amplitude, .15, 1, amplitudes}, {&h.Effect, .012, 1, []float64{.003, .006, .012, .025, .05, .1}}},
	}
	for f := range h.Lengths {
		h.Lengths[f] = 3
		if slices.ContainsFunc(o.points, func(p point) bool { return p.x[f] != o.points[0].x[f] }) {
			s.axes = append(s.axes, []axis{{&h.Lengths[f], 3, .7, []float64{1, 1.5, 2, 3, 4, 6, 8}}})
		}
	}
	if o.several {
		s.axes = append(s.axes, []axis{{&h.NodeAmplitude, .15, 1, amplitudes}})
	}
	s.best, s.posterior = *h, s.logPosterior()
	return s
}

// run searches along one group of axes after another, until nothing improves.
func (s *search) run(ctx context.Context) (Hyperparameters, error) {
	const sweeps = 3
	for range sweeps {
		before := s.posterior
		for _, group := range s.axes {
			if err := ctx.Err(); err != nil {
				return s.best, err
			}
			s.along(group)
			s.Hyperparameters = s.best
		}
		if s.posterior == before {
			break
		}
	}
	return s.best, nil
}

// along tries the grid of the axes.
func (s *search) along(axes []axis) {
	if len(axes) == 0 {
		if p := s.logPosterior(); p > s.posterior {
			s.best, s.posterior = s.Hyperparameters, p
		}
		return
	}
	a := &axes[0]
	for _, x := range a.grid {
		*a.value = x
		s.along(axes[1:])
	}
}

// logPosterior returns the log of marginal likelihood times priors, up to a constant.
func (s *search) logPosterior() float64 {
	if s.near == nil || s.nearOf != s.Lengths {
		s.near, s.nearOf = s.kernels(&s.Hyperparameters), s.Lengths
	}
	g, ok := condition(s.Hyperparameters, s.observations, s.near)
	if !ok {
		return math.Inf(-1)
	}
	sum := g.logLikelihood
	for _, group := range s.axes {
		for _, a := range group {
			z := math.Log(*a.value/a.mean) / a.width
			sum -= z * z / 2
		}
	}
	return sum
}
