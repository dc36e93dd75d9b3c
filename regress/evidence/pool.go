package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// spread is a sum of squares of logarithms about their mean, and its degrees of freedom.
type spread struct{ squares, freedom float64 }

// Most degrees of freedom that one configuration lends to its model, and the passages of one model to those
// of others.
const mostLent = 4.0

// modelWeight is the weight of the variance of a model for one of its configurations.
const modelWeight = 3.0

// pool returns the variance that groups share, where each group has a variance of its own: the
// common one times a scaled inverse chi-squared variable of weight degrees of freedom. It is the
// mode of the posterior, and solves
//
//	sum [(weight + d) S / (weight v + S) - d] + priorWeight (prior/v - 1) = 0
//
// for squares S with d degrees of freedom, scaled down to at most most degrees. So a group pulls
// upwards by at most weight and downwards by at most most, whatever its squares are.
func pool(groups []spread, weight, prior, priorWeight, most float64) float64 {
	excess := func(v float64) float64 {
		sum := priorWeight * (prior/v - 1)
		for _, g := range groups {
			if g.freedom <= 0 {
				continue
			}
			d := min(g.freedom, most)
			s := g.squares * d / g.freedom
			sum += (weight+d)*s/(weight*v+s) - d
		}
		return sum
	}
	const range8, tolerance = 1e8, 1.001
	low, high := prior/range8, prior*range8
	for high/low > tolerance {
		if middle := math.Sqrt(low * high); excess(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}

// sharedVariance is the prior of a variance that the groups of a subject share, and its weight in degrees of
// freedom.
type sharedVariance struct{ prior, weight float64 }

// runVariance is the variance of whole runs.
var runVariance = sharedVariance{prior: 0.03 * 0.03, weight: 4}

// lend returns what the groups of a subject lend to other subjects: the variance that they share.
func (v sharedVariance) lend(groups []spread) spread {
	return spread{mostLent * pool(groups, modelWeight, v.prior, v.weight, mostLent), mostLent}
}

// borrow returns the variance of a subject by what other subjects lend.
func (v sharedVariance) borrow(others []spread) float64 {
	return pool(others, v.weight, v.prior, 4*mostLent, mostLent)
}

// ofOthers returns the variance of a group by the other groups of its subject, and its weight. subject is
// what the subject has borrowed.
func (v sharedVariance) ofOthers(groups []spread, i int, subject float64) (variance, weight float64) {
	others, used := slices.Concat(groups[:i], groups[i+1:]), 0.0
	for _, g := range others {
		used += min(g.freedom, mostLent)
	}
	return pool(others, modelWeight, subject, v.weight, mostLent), 1 / (1/modelWeight + 1/(v.weight+used))
}

// posterior is of a logarithm: its location with the variance that runs share, the variance of a run about
// it, and degrees of freedom.
type posterior struct{ location, shared, run, degrees float64 }

func (p posterior) distribution() Distribution {
	return Distribution{p.location, math.Sqrt(p.shared + p.run), p.degrees}
}

// towards interpolates linearly to another posterior.
func (p posterior) towards(q *posterior, share float64) posterior {
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	return posterior{mix(p.location, q.location), mix(p.shared, q.shared), mix(p.run, q.run),
		mix(p.degrees, q.degrees)}
}

// robustMean is the location of values with Student-t errors.
type robustMean struct {
	location float64
	number   float64 // of values that it rests on: the sum of their weights
	squares  float64 // weighted, about the location
}

// robustTails are the degrees of freedom of the errors of times.
const robustTails = 4.0

// robustMeanOf estimates the location of values with t errors of some degrees of freedom by expectation
// maximization, which starts with the plain variance. A prior on the variance counts as priorWeight
// values. noise is a known further variance of each value; nil: none.
func robustMeanOf(values []float64, prior, priorWeight, tails float64, noise []float64) robustMean {
	n := float64(len(values))
	m := robustMean{location: Median(values), number: 1}
	if len(values) == 1 {
		return m
	}
	if noise == nil {
		noise = make([]float64, len(values))
	}
	variance := priorWeight * prior
	for _, v := range values {
		variance += (v - m.location) * (v - m.location)
	}
	variance /= priorWeight + n - 1
	const most, tolerance = 60, 1e-6
	weights := make([]float64, len(values))
	for range most {
		sum, total := 0.0, 0.0
		for i, v := range values {
			all, d := variance+noise[i], v-m.location
			weights[i] = (tails + 1) / (tails + d*d/all) * variance / all
			sum, total = sum+weights[i]*v, total+weights[i]
		}
		m = robustMean{location: sum / total, number: min(n, total)}
		for i, v := range values {
			m.squares += weights[i] * (v - m.location) * (v - m.location)
		}
		next := (priorWeight*prior + m.squares) / (priorWeight + n - 1)
		if math.Abs(next/variance-1) < tolerance {
			break
		}
		variance = next
	}
	return m
}

// Median returns the median of values, of which there is one or more.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// clippedSquares returns the sum of squares of logarithms about their mean, where each counts with at most
// maxDeviation from their median.
func clippedSquares(logs []float64) float64 {
	return sumOfSquares(centered(clipAround(logs, maxDeviation)))
}

// clipAround limits values to a distance from their median.
func clipAround(values []float64, distance float64) []float64 {
	m := Median(values)
	clipped := make([]float64, len(values))
	for i, v := range values {
		clipped[i] = max(m-distance, min(m+distance, v))
	}
	return clipped
}

// maxDeviation is the largest deviation of a run from the median of its configuration, logarithmic.
const maxDeviation = 1.0

func centered(values []float64) []float64 {
	all := slices.Clone(values)
	floats.AddConst(-stat.Mean(values, nil), all)
	return all
}

func sumOfSquares(values []float64) float64 { return floats.Dot(values, values) }
