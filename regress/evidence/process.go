package evidence

import (
	"cmp"
	"math"
)

// inputs is the number of features of the law and the process: log2 batch size, log2 CPUs,
// concurrent jobs / 2, processes per core, foreign CPU and foreign IO-wait in quarters of the node.
const inputs = 6

// foreignScale scales foreign loads, which are at most 1, to the lengths of the search.
const foreignScale = 4

// point is a configuration in the features of the process.
type point struct {
	x    [inputs]float64
	node int
}

func pointOf(c *Configuration, node int) point {
	return point{[inputs]float64{
		math.Log2(float64(c.BatchSize)), math.Log2(float64(c.CPUs)),
		c.ConcurrentJobs / 2, c.ProcessesPerCore,
		foreignScale * c.ForeignCPURatio, foreignScale * c.ForeignIOWaitRatio,
	}, node}
}

// Hyperparameters of the law and the Gaussian process of one subject, which maximize marginal
// likelihood times priors.
type Hyperparameters struct {
	// Offset is the log2 of the batch size at which the cost per iteration equals
	// the cost per sample on one CPU.
	Offset float64 `json:"offset"`
	// Amplitude of the process, and NodeAmplitude of the process of each node type, as standard
	// deviations of log seconds.
	Amplitude     float64 `json:"amplitude"`
	NodeAmplitude float64 `json:"node_amplitude,omitempty"`
	// Lengths over which features matter, in their units. 0 means the mean of the prior: a file of
	// an earlier version lacks the length of a new feature.
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
// epoch is proportional to 1/CPUs + 2^Offset/batch: CPUs share the samples, not the iterations.
var (
	lawMean     = [terms]float64{0, 1}
	lawVariance = [terms]float64{100, 0.25, 1, 1, foreignVariance, foreignVariance}
)

// lengthPrior and lengthWidth are mean and standard deviation of the prior of a length, logarithmic.
const lengthPrior, lengthWidth = 3., .7

// law returns the regressors of the law at a point.
func (h *Hyperparameters) law(p *point) [terms]float64 {
	row := [terms]float64{1, math.Log(math.Exp2(-p.x[1]) + math.Exp2(h.Offset-p.x[0]))}
	copy(row[2:], p.x[2:])
	return row
}

// timeProcess is the Gaussian process of one subject, conditioned on its configurations.
type timeProcess struct {
	Hyperparameters
	severalNodes bool
	points       []point
	scaled       [][inputs]float64 // features of points in lengths
	laws         [][terms]float64
	weights      []float64 // K^-1 (y - H m)
	inverse      []float64 // K^-1
	inflation    float64   // q: factor of variances at unmeasured points, at least 1
}

// scale divides the features of a point by their lengths.
func (h *Hyperparameters) scale(p *point) (x [inputs]float64) {
	for f := range x {
		x[f] = p.x[f] / cmp.Or(h.Lengths[f], lengthPrior)
	}
	return x
}

// kernel returns the covariance of law and process at p and at point i; x is p scaled.
func (g *timeProcess) kernel(p *point, x *[inputs]float64, law *[terms]float64, i int) float64 {
	far, y := 0.0, &g.scaled[i]
	for f := range x {
		z := x[f] - y[f]
		far += z * z
	}
	return g.covariance(matern52(far), p.node == g.points[i].node, law, &g.laws[i])
}

func (g *timeProcess) covariance(near float64, same bool, a, b *[terms]float64) float64 {
	k := g.Amplitude * g.Amplitude * near
	if g.severalNodes && same {
		k += 1 + g.NodeAmplitude*g.NodeAmplitude*near
	}
	for t, v := range lawVariance {
		k += a[t] * v * b[t]
	}
	return k
}

// prior returns the mean of the law at a point without data.
func (g *timeProcess) prior(law *[terms]float64) float64 {
	m := 0.0
	for t := range terms {
		m += law[t] * lawMean[t]
	}
	return m
}

// newGaussianProcess conditions the process on observations.
func newGaussianProcess(h Hyperparameters, o observations) (*timeProcess, bool) {
	n, points := len(o.points), o.points
	g := &timeProcess{Hyperparameters: h, severalNodes: o.several, points: points}
	residual := make([]float64, n)
	for i := range points {
		g.laws = append(g.laws, h.law(&points[i]))
		g.scaled = append(g.scaled, h.scale(&points[i]))
		residual[i] = o.y[i] - g.prior(&g.laws[i])
	}
	k := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			k[i*n+j] = g.kernel(&points[i], &g.scaled[i], &g.laws[i], j)
		}
		k[i*n+i] += h.Effect*h.Effect + o.noise[i]
	}
	c, ok := factorize(n, k)
	if !ok {
		return nil, false
	}
	g.weights, g.inverse = c.solve(residual), c.inverse()
	g.inflation = max(1, inflation(g.weights, g.inverse))
	return g, true
}

// inflation compares the squared leave-one-out errors with their variances, both in closed form
// (Rasmussen, Williams 2006, equations 5.10 to 5.12), with a prior of weight 4 on 1.
func inflation(weights, inverse []float64) float64 {
	const weight = 4.
	n := len(weights)
	sum := weight
	for i, w := range weights {
		sum += w * w / inverse[i*n+i]
	}
	return sum / (weight + float64(n))
}

// predict returns mean and variance at a point. measured is its index among the points, or -1 if
// its configuration never ran: then the variance includes the configuration effect and is inflated.
// k is a buffer for one number per point.
func (g *timeProcess) predict(p *point, measured int, k []float64) (mean, variance float64) {
	law, scaled := g.law(p), g.scale(p)
	n := len(g.points)
	k = k[:n]
	for i := range k {
		k[i] = g.kernel(p, &scaled, &law, i)
	}
	effect := g.Effect * g.Effect
	if measured >= 0 {
		k[measured] += effect
	}
	variance = g.covariance(1, true, &law, &law) + effect
	explained := 0.0
	for i, x := range k {
		row := g.inverse[i*n : i*n+n]
		explained += x * (x*row[i] + 2*dot(row[:i], k[:i]))
	}
	variance = max(variance-explained, 1e-12)
	if measured < 0 {
		variance *= g.inflation
	}
	return g.prior(&law) + dot(k, g.weights), variance
}

// observations are the data of the process: the log paces of the configurations, and the variances of
// their estimates.
type observations struct {
	points   []point
	several  bool // there are several node types
	y, noise []float64
}

// cholesky is the Cholesky factor of an n by n matrix: its lower triangle, row by row.
type cholesky struct {
	n int
	l []float64 // n*n; unspecified above the diagonal
}

// factorize replaces the lower triangle of a symmetric matrix by its Cholesky factor; false if the
// matrix is not positive definite.
func factorize(n int, a []float64) (cholesky, bool) {
	for i := range n {
		row := a[i*n : i*n+n]
		for j := range i {
			other := a[j*n : j*n+n]
			row[j] = (row[j] - dot(row[:j], other[:j])) / other[j]
		}
		d := row[i] - dot(row[:i], row[:i])
		if !(d > 0) || math.IsInf(d, 0) {
			return cholesky{}, false
		}
		row[i] = math.Sqrt(d)
	}
	return cholesky{n, a}, true
}

// logDeterminant returns the log determinant of the factorized matrix.
func (c cholesky) logDeterminant() float64 {
	sum := 0.0
	for i := range c.n {
		sum += math.Log(c.l[i*c.n+i])
	}
	return 2 * sum
}

// forward solves L x = b in place.
func (c cholesky) forward(b []float64) {
	for i := range c.n {
		row := c.l[i*c.n : i*c.n+c.n]
		b[i] = (b[i] - dot(row[:i], b[:i])) / row[i]
	}
}

// backward solves L' x = b in place.
func (c cholesky) backward(b []float64) {
	for i := c.n - 1; i >= 0; i-- {
		b[i] /= c.l[i*c.n+i]
		row := c.l[i*c.n : i*c.n+i]
		for j, l := range row {
			b[j] -= l * b[i]
		}
	}
}

// solve returns the solution of K x = b.
func (c cholesky) solve(b []float64) []float64 {
	x := append([]float64(nil), b...)
	c.forward(x)
	c.backward(x)
	return x
}

// inverse returns the inverse of the factorized matrix, n by n.
func (c cholesky) inverse() []float64 {
	inverse := make([]float64, c.n*c.n)
	for i := range c.n {
		column := inverse[i*c.n : i*c.n+c.n] // a row, as the inverse is symmetric
		column[i] = 1
		c.forward(column)
		c.backward(column)
	}
	return inverse
}

// dot returns the dot product. Four independent sums let the processor overlap the additions.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// matern52 is the Matérn kernel of smoothness 5/2 at a squared scaled distance (Rasmussen, Williams
// 2006, equation 4.17).
func matern52(squared float64) float64 {
	r := math.Sqrt(5 * squared)
	return (1 + r + r*r/3) * math.Exp(-r)
}
