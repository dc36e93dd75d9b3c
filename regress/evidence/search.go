package evidence

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// axis is a hyperparameter of the search. Its prior is normal in the logarithm, and its grid has the
// octaves from low to high about the mean.
type axis struct {
	value           *float64
	mean, width     float64
	low, high, step float64
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
	s.axes = [][]axis{
		{{&h.Balance, 128, 5 * math.Ln2, -9, 8, 1}},
		{{&h.Amplitude, .15, 1, -2.3, 2.7, 1}, {&h.Effect, .012, 1, -2, 3, 1}},
		{{&h.NodeAmplitude, .15, 1, -2.3, 2.7, 1}},
	}
	if !o.several {
		s.axes = s.axes[:2]
		h.NodeAmplitude = .15
	}
	for f := range h.Lengths {
		h.Lengths[f] = 3
		for i := range o.points {
			if o.points[i].x[f] != o.points[0].x[f] {
				s.axes = append(s.axes, []axis{{&h.Lengths[f], 3, .7, -1.5, 1.5, .5}})
				break
			}
		}
	}
	for _, group := range s.axes {
		for _, a := range group {
			*a.value = a.mean
		}
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
	for octaves := a.low; octaves <= a.high; octaves += a.step {
		*a.value = a.mean * math.Exp2(octaves)
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
