package evidence

import (
	"context"
	"math"
)

// The grids of the coordinate search, and the priors of the hyperparameters: means
// and standard deviations, logarithmic but for the offset.
var (
	offsets    = []float64{-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	amplitudes = []float64{.03, .06, .12, .25, .5, 1}
	lengths    = []float64{1, 1.5, 2, 3, 4, 6, 8}
	effects    = []float64{.003, .006, .012, .025, .05, .1}
)

const (
	offsetPrior, offsetWidth       = 7., 5.
	amplitudePrior, amplitudeWidth = .15, 1.
	effectPrior, effectWidth       = .012, 1.

	sweeps = 3
)

// likelihood computes the marginal likelihood of hyperparameters. It caches the Matérn kernel of
// the last lengths.
type likelihood struct {
	observations
	varies [inputs]bool

	lengths [inputs]float64
	matern  []float64
	k       []float64
	laws    [][terms]float64
	r       []float64
}

func newLikelihood(o observations) *likelihood {
	n := len(o.points)
	l := &likelihood{observations: o,
		matern: make([]float64, n*n), k: make([]float64, n*n),
		laws: make([][terms]float64, n), r: make([]float64, n)}
	for f := range inputs {
		for i := range o.points {
			l.varies[f] = l.varies[f] || o.points[i].x[f] != o.points[0].x[f]
		}
	}
	return l
}

// refresh computes the Matern kernel if the lengths changed.
func (l *likelihood) refresh(h *Hyperparameters) {
	if l.lengths == h.Lengths {
		return
	}
	l.lengths = h.Lengths
	var scaled [inputs]float64
	for f, x := range h.Lengths {
		scaled[f] = 1 / (x * x)
	}
	n := len(l.points)
	for i := range n {
		for j := range i {
			far := 0.0
			for f, s := range scaled {
				if l.varies[f] {
					z := l.points[i].x[f] - l.points[j].x[f]
					far += z * z * s
				}
			}
			l.matern[i*n+j] = matern52(far)
		}
		l.matern[i*n+i] = 1
	}
}

// logPosterior returns the log of marginal likelihood times priors, up to a constant.
func (l *likelihood) logPosterior(h *Hyperparameters) float64 {
	l.refresh(h)
	g := timeProcess{Hyperparameters: *h, severalNodes: l.several}
	n := len(l.points)
	for i := range n {
		l.laws[i] = h.law(&l.points[i])
		l.r[i] = l.y[i] - g.prior(&l.laws[i])
		for j := range i + 1 {
			same := l.points[i].node == l.points[j].node
			l.k[i*n+j] = g.covariance(l.matern[i*n+j], same, &l.laws[i], &l.laws[j])
		}
		l.k[i*n+i] += h.Effect*h.Effect + l.noise[i]
	}
	c, ok := factorize(n, l.k)
	if !ok {
		return math.Inf(-1)
	}
	c.forward(l.r)
	return -dot(l.r, l.r)/2 - c.logDeterminant()/2 + h.logPrior(l.varies, l.several)
}

func (h *Hyperparameters) logPrior(varies [inputs]bool, several bool) float64 {
	square := func(z float64) float64 { return -z * z / 2 }
	p := square((h.Offset-offsetPrior)/offsetWidth) +
		square(math.Log(h.Amplitude/amplitudePrior)/amplitudeWidth) +
		square(math.Log(h.Effect/effectPrior)/effectWidth)
	if several {
		p += square(math.Log(h.NodeAmplitude/amplitudePrior) / amplitudeWidth)
	}
	for f, v := range varies {
		if v {
			p += square(math.Log(h.Lengths[f]/lengthPrior) / lengthWidth)
		}
	}
	return p
}

// gridAxis is one hyperparameter, or two that are searched together.
type gridAxis struct {
	at, with    *float64 // with may be nil
	grid, grid2 []float64
}

// search finds the hyperparameters by coordinate search over the grids. The amplitude is searched
// together with the effect: each explains what the other leaves, so a search along one alone would
// not move.
func (l *likelihood) search(ctx context.Context) (Hyperparameters, error) {
	h := Hyperparameters{Offset: offsetPrior, Amplitude: .12, Effect: effectPrior}
	for f := range h.Lengths {
		h.Lengths[f] = lengthPrior
	}
	axes := []gridAxis{{at: &h.Offset, grid: offsets},
		{at: &h.Amplitude, grid: amplitudes, with: &h.Effect, grid2: effects}}
	for f, v := range l.varies {
		if v {
			axes = append(axes, gridAxis{at: &h.Lengths[f], grid: lengths})
		}
	}
	if l.several {
		h.NodeAmplitude = .12
		axes = append(axes, gridAxis{at: &h.NodeAmplitude, grid: amplitudes})
	}
	best := l.logPosterior(&h)
	for range sweeps {
		before := best
		for _, a := range axes {
			if err := ctx.Err(); err != nil {
				return h, err
			}
			best = l.along(&h, a, best)
		}
		if best == before {
			break
		}
	}
	return h, nil
}

// along moves one axis to the best value of its grid.
func (l *likelihood) along(h *Hyperparameters, a gridAxis, best float64) float64 {
	if a.with == nil {
		unused := 0.0
		a.with, a.grid2 = &unused, []float64{0}
	}
	kept, kept2 := *a.at, *a.with
	for _, x := range a.grid {
		for _, x2 := range a.grid2 {
			*a.at, *a.with = x, x2
			if value := l.logPosterior(h); value > best {
				best, kept, kept2 = value, x, x2
			}
		}
	}
	*a.at, *a.with = kept, kept2
	return best
}
