package evidence

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

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
	s.axes = [][]axis{
		{{&h.Balance, 128, 5 * math.Ln2, powersOfTwo(-2, 15)}},
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

// powersOfTwo returns 2^low to 2^high.
func powersOfTwo(low, high float64) (all []float64) {
	for x := low; x <= high; x++ {
		all = append(all, math.Exp2(x))
	}
	return all
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
