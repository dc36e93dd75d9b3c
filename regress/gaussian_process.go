package regress

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// gaussianProcess is a Gaussian process with unknown hyperparameters. These are logarithms: a
// length per input, amplitude, noise.
type gaussianProcess struct {
	inputs       []Input
	trend        []Input
	points       [][]float64
	trendPoints  [][]float64
	y            []float64 // in deviations from the mean
	noise        []float64 // of each example, relative to an example of weight 1
	center, size float64
}

func newGaussianProcess(d *Dataset, y []float64) (*gaussianProcess, error) {
	p := &gaussianProcess{inputs: mainInputs(d), center: mean(y), size: deviation(y)}
	if len(p.inputs) > maxInputs {
		return nil, fmt.Errorf("%w: a Gaussian process of %d inputs, want at most %d",
			ErrBadOptions, len(p.inputs), maxInputs)
	}
	if p.size == 0 {
		p.size = 1
	}
	for _, in := range p.inputs {
		if !isProduct(d, in.Feature) {
			p.trend = append(p.trend, in)
		}
	}
	heaviest := 1.0
	if d.Weight != nil {
		heaviest = slices.Max(d.Weight)
	}
	var row []float64
	for i := range y {
		row = d.Row(i, row)
		p.points = append(p.points, scaled(p.inputs, row))
		p.trendPoints = append(p.trendPoints, scaled(p.trend, row))
		p.y = append(p.y, (y[i]-p.center)/p.size)
		noise := 1.0
		if d.Weight != nil {
			noise = min(heaviest/d.Weight[i], 1e12)
		}
		p.noise = append(p.noise, noise)
	}
	return p, nil
}

func scaled(inputs []Input, row []float64) []float64 {
	values := make([]float64, len(inputs))
	for i := range inputs {
		values[i] = inputs[i].value(row[inputs[i].Feature])
	}
	return values
}

// sample returns the process of a random sample of at most n examples.
func (p *gaussianProcess) sample(n int) *gaussianProcess {
	if len(p.y) <= n {
		return p
	}
	s := *p
	s.points, s.trendPoints, s.y, s.noise = nil, nil, nil, nil
	random := stream(2)
	order := make([]int, len(p.y))
	for i := range order {
		order[i] = i
	}
	random.shuffle(order)
	order = order[:n]
	slices.Sort(order)
	for _, i := range order {
		s.points, s.trendPoints = append(s.points, p.points[i]), append(s.trendPoints,
			p.trendPoints[i])
		s.y, s.noise = append(s.y, p.y[i]), append(s.noise, p.noise[i])
	}
	return &s
}

// covariance returns the covariance of the corrections, and the sum of the covariances of
// corrections, trend and noise.
func (p *gaussianProcess) covariance(theta []float64) (smooth, whole *mat.SymDense) {
	n, d := len(p.y), len(p.inputs)
	smooth, whole = mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	near, all := smooth.RawSymmetric().Data, whole.RawSymmetric().Data // upper triangles
	power, noise := math.Exp(2*theta[d]), math.Exp(2*theta[d+1])
	points := make([]float64, 0, n*d)
	for _, point := range p.points {
		for i, x := range point {
			points = append(points, x*math.Exp(-theta[i]))
		}
	}
	for i := range n {
		for j := i; j < n; j++ {
			far := 0.0
			for k, x := range points[i*d : i*d+d] {
				z := x - points[j*d+k]
				far += z * z
			}
			k := power * math.Exp(-far/2)
			near[i*n+j] = k
			all[i*n+j] = k + trendPrior*trendPrior*(1+dot(p.trendPoints[i], p.trendPoints[j]))
		}
		all[i*n+i] += noise*p.noise[i] + jitter
	}
	return smooth, whole
}

// negativeLogPosterior returns the negative logarithm of marginal likelihood times priors. It sets
// the gradient if that is not nil (Rasmussen, Williams, equation 5.9: 1/2 tr((K^-1 - a a') dK)).
func (p *gaussianProcess) negativeLogPosterior(theta, gradient []float64) float64 {
	smooth, whole := p.covariance(theta)
	var factors mat.Cholesky
	if !factors.Factorize(whole) {
		return math.Inf(1)
	}
	n, d := len(p.y), len(p.inputs)
	alpha := mat.NewVecDense(n, nil)
	if err := factors.SolveVecTo(alpha, mat.NewVecDense(n, p.y)); err != nil {
		return math.Inf(1)
	}
	value := dot(p.y, alpha.RawVector().Data)/2 + factors.LogDet()/2
	for i := range d {
		z := (theta[i] - math.Log(lengthPrior)) / lengthWidth
		value += z * z / 2
	}
	z := (theta[d+1] - math.Log(noisePrior)) / noiseWidth
	value += z * z / 2
	if gradient == nil {
		return value
	}
	var inverse mat.SymDense
	if err := factors.InverseTo(&inverse); err != nil {
		return math.Inf(1)
	}
	p.slope(theta, gradient, smooth, &inverse, alpha.RawVector().Data)
	return value
}

// slope sets the gradient of the negative log posterior.
func (p *gaussianProcess) slope(
	theta, gradient []float64, smooth, inverse *mat.SymDense, alpha []float64,
) {
	d := len(p.inputs)
	clear(gradient)
	noise := math.Exp(2 * theta[d+1])
	rates := make([]float64, d)
	for k := range rates {
		rates[k] = math.Exp(-2 * theta[k])
	}
	n, back, near := len(p.y), inverse.RawSymmetric().Data, smooth.RawSymmetric().Data
	for i := range p.y {
		for j := i; j < n; j++ {
			factor := back[i*n+j] - alpha[i]*alpha[j] // both triangles: 2 * 1/2
			if i == j {
				factor /= 2
				gradient[d+1] += factor * 2 * noise * p.noise[i]
			}
			factor *= near[i*n+j]
			gradient[d] += 2 * factor
			for k, rate := range rates {
				z := p.points[i][k] - p.points[j][k]
				gradient[k] += factor * z * z * rate
			}
		}
	}
	for k := range d {
		gradient[k] += (theta[k] - math.Log(lengthPrior)) / (lengthWidth * lengthWidth)
	}
	gradient[d+1] += (theta[d+1] - math.Log(noisePrior)) / (noiseWidth * noiseWidth)
}

// starts are the starting points of the search in turn: lengths, amplitude, noise.
var starts = [][3]float64{{2, 0.5, 0.1}, {1, 1, 0.2}, {5, 0.3, 0.05}}

// search returns the hyperparameters with the smallest loss from several starts.
func (p *gaussianProcess) search(ctx context.Context, count int) ([]float64, error) {
	d := len(p.inputs)
	var best []float64
	least := math.Inf(1)
	for s := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		theta, from := make([]float64, d+2), starts[s%len(starts)]
		for i := range d {
			theta[i] = math.Log(from[0]) + 0.5*float64(i%(s/len(starts)+1))
		}
		theta[d], theta[d+1] = math.Log(from[1]), math.Log(from[2])
		// The optimizer requests value and gradient of one point in two calls.
		at, value, slope := []float64(nil), 0.0, make([]float64, d+2)
		look := func(x []float64) {
			if !slices.Equal(at, x) {
				at, value = slices.Clone(x), p.negativeLogPosterior(p.clamp(x), slope)
			}
		}
		problem := optimize.Problem{
			Func: func(x []float64) float64 { look(x); return value },
			Grad: func(gradient, x []float64) { look(x); copy(gradient, slope) },
		}
		// Minimize returns an error if steps become too small; the best point is still valid.
		result, err := optimize.Minimize(problem, theta, &optimize.Settings{
			GradientThreshold: 1e-4,
			MajorIterations:   100,
			Converger: &optimize.FunctionConverge{
				Absolute:   1e-4,
				Iterations: 4,
			},
		}, &optimize.LBFGS{})
		if result == nil {
			return nil, fmt.Errorf("search hyperparameters: %w", err)
		}
		if result.F < least || best == nil {
			best, least = p.clamp(result.X), result.F
		}
	}
	return best, nil
}

// clamp limits hyperparameters to a sensible range.
func (p *gaussianProcess) clamp(theta []float64) []float64 {
	kept := slices.Clone(theta)
	for i, x := range kept {
		kept[i] = min(max(x, -5), 6)
		if math.IsNaN(x) {
			kept[i] = 0
		}
	}
	return kept
}

// summand is a value of the process with a sign.
type summand struct {
	sign         float64
	point, trend []float64
}

// parts returns the summands of each measurement: one value for an example, the difference of two
// for a step.
func (p *gaussianProcess) parts(steps []wrongStep) [][]summand {
	var all [][]summand
	for i := range p.y {
		all = append(all, []summand{{1, p.points[i], p.trendPoints[i]}})
	}
	for _, s := range steps {
		all = append(all, []summand{{1, scaled(p.inputs, s.to), scaled(p.trend, s.to)}, {
			-1, scaled(p.inputs, s.from), scaled(p.trend, s.from),
		}})
	}
	return all
}

// between returns the covariance of two measurements without their noise.
func (p *gaussianProcess) between(a, b []summand, theta []float64) float64 {
	sum := 0.0
	for _, x := range a {
		for _, y := range b {
			far := 0.0
			for k := range x.point {
				z := (x.point[k] - y.point[k]) * math.Exp(-theta[k])
				far += z * z
			}
			sum += x.sign * y.sign * (math.Exp(2*theta[len(p.inputs)]-far/2) +
				trendPrior*trendPrior*(1+dot(
					x.trend, y.trend,
				)))
		}
	}
	return sum
}

// posterior returns the process given the examples and given that steps are level: the exact
// solution of (K + trend + noise) a = y, with its smooth part as weights of points and its linear
// part as a law.
func (p *gaussianProcess) posterior(theta []float64, steps []wrongStep) *Gaussian {
	parts := p.parts(steps)
	alpha := p.solve(theta, parts)
	d := len(p.inputs)
	g := &Gaussian{
		Inputs:    p.inputs,
		Amplitude: math.Exp(theta[d]) * p.size,
		Noise:     math.Exp(theta[d+1]) * p.size,
	}
	for i := range d {
		g.Lengths = append(g.Lengths, math.Exp(theta[i]))
	}
	g.Trend = Law{Inputs: p.trend, Intercept: p.center, Coefficients: make([]float64, len(p.trend))}
	for k := range p.trend {
		g.Trend.Terms = append(g.Trend.Terms, []int{k})
	}
	for i, measured := range parts {
		for _, x := range measured {
			g.Points = append(g.Points, x.point)
			g.Weights = append(g.Weights, x.sign*alpha[i]*math.Exp(2*theta[d])*p.size)
			pull := x.sign * alpha[i] * trendPrior * trendPrior * p.size
			g.Trend.Intercept += pull
			for k, t := range x.trend {
				g.Trend.Coefficients[k] += pull * t
			}
		}
	}
	g.prepare()
	return g
}

// solve returns the weights of the measurements.
func (p *gaussianProcess) solve(theta []float64, parts [][]summand) []float64 {
	n := len(parts)
	whole, y := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	noise := math.Exp(2 * theta[len(p.inputs)+1])
	for i := range n {
		for j := i; j < n; j++ {
			whole.SetSym(i, j, p.between(parts[i], parts[j], theta))
		}
		if i < len(p.y) {
			y.SetVec(i, p.y[i])
			whole.SetSym(i, i, whole.At(i, i)+noise*p.noise[i]+jitter)
		} else {
			whole.SetSym(i, i, whole.At(i, i)+monotoneNoise*monotoneNoise)
		}
	}
	var factors mat.Cholesky
	for tiny := jitter; !factors.Factorize(whole); tiny *= 10 {
		for i := range n {
			whole.SetSym(i, i, whole.At(i, i)+tiny)
		}
	}
	alpha := mat.NewVecDense(n, nil)
	if err := factors.SolveVecTo(alpha, y); err != nil {
		// The system is badly conditioned. Jitter has made it solvable, and the calibration
		// measures the accuracy of the solution.
		_ = err
	}
	return alpha.RawVector().Data
}
