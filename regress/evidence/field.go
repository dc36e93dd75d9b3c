package evidence

import "math"

// fieldDeviations are the possible standard deviations of the slow field.
var fieldDeviations = [...]float64{0, .01, .02, .05, .1}

const (
	fieldDiscount    = 0.98 // of the likelihood of a deviation, per run
	fieldCorrelation = 0.98 // of the field, per run
	fieldOwn         = 0.6  // deviation of a model's own field, relative to the common field
	fieldWindow      = 64   // residuals that condition the field
	fieldSurprise    = 2.5  // maximum residual in standard deviations: changes are slow
	fieldPrior       = 2.0  // minimum lead over the log likelihood without a field
)

// field is a slow change of the times of all models, plus one of each model, conditioned on the
// last residuals (Gaussian process with exponential correlation). Runs of one configuration also
// share the error of its prediction.
type field struct {
	deviation float64
	window    []Residual
	weights   []float64
	factor    cholesky
}

// fieldDecay are the powers of fieldCorrelation.
var fieldDecay = func() (decay [fieldWindow + 1]float64) {
	for i := range decay {
		decay[i] = math.Pow(fieldCorrelation, float64(i))
	}
	return decay
}()

// newField conditions a field on the residuals without the jumps.
func newField(deviation float64, residuals []Residual, left []float64) *field {
	first := max(0, len(residuals)-fieldWindow)
	f := &field{deviation: deviation, window: residuals[first:]}
	n := len(f.window)
	k := make([]float64, n*n)
	for i := range n {
		r := &f.window[i]
		for j := range i + 1 {
			k[i*n+j] = f.covariance(i-j, r, &f.window[j])
		}
		k[i*n+i] += max(r.Variance-r.Shared, residualTolerance)
	}
	c, ok := factorize(n, k)
	if !ok {
		f.window = nil
		return f
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = f.window[i].clipped(left[first+i], fieldSurprise)
	}
	f.weights, f.factor = c.solve(values), c
	return f
}

// covariance returns the covariance of two runs a number of runs apart.
func (f *field) covariance(apart int, a, b *Residual) float64 {
	k := 0.0
	if f.deviation > 0 {
		k = f.deviation * f.deviation * fieldDecay[apart]
		if a.subject() == b.subject() {
			k *= 1 + fieldOwn*fieldOwn
		}
	}
	if a.Configuration == b.Configuration {
		k += math.Sqrt(a.Shared * b.Shared)
	}
	return k
}

// at predicts the field for the next run: its mean, and its share of the variance of the run's
// prediction. It uses configuration and shared variance of r only.
func (f *field) at(r *Residual) (mean, variance float64) {
	n := len(f.window)
	k := make([]float64, n)
	for i := range k {
		k[i] = f.covariance(n-i, r, &f.window[i])
	}
	mean = dot(k, f.weights)
	f.factor.forward(k)
	variance = f.deviation*f.deviation*(1+fieldOwn*fieldOwn) - dot(k, k)
	return mean, max(variance, -r.Shared)
}
