package evidence

import (
	"math"
	"slices"
)

// spread is a sum of squares of logarithms about their mean, and its degrees of freedom.
type spread struct{ squares, freedom float64 }

// Most degrees of freedom that one configuration lends to its model, and one model to others.
const mostLent = 4.0

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

// robustMean is the location of values with Student-t errors.
type robustMean struct {
	location float64
	number   float64 // of values that it rests on: the sum of their weights
	squares  float64 // weighted, about the location
}

// robustTails are the degrees of freedom of the errors in a robustMean.
const robustTails = 4.0

// robustMeanOf estimates the location of values by expectation maximization, which starts with the
// plain variance. A prior on the variance counts as priorWeight values.
func robustMeanOf(values []float64, prior, priorWeight float64) robustMean {
	n := float64(len(values))
	m := robustMean{location: median(values), number: 1}
	if len(values) == 1 {
		return m
	}
	variance := priorWeight * prior
	for _, v := range values {
		variance += (v - m.location) * (v - m.location)
	}
	variance /= priorWeight + n - 1
	const most, tolerance = 60, 1e-6
	for range most {
		sum, weights := 0.0, 0.0
		for _, v := range values {
			w := robustWeight(v-m.location, variance)
			sum, weights = sum+w*v, weights+w
		}
		before := m.location
		m = robustMean{location: sum / weights, number: min(n, weights)}
		for _, v := range values {
			d := v - m.location
			m.squares += robustWeight(v-before, variance) * d * d
		}
		next := (priorWeight*prior + m.squares) / (priorWeight + n - 1)
		if math.Abs(next/variance-1) < tolerance {
			break
		}
		variance = next
	}
	return m
}

func robustWeight(deviation, variance float64) float64 {
	return (robustTails + 1) / (robustTails + deviation*deviation/variance)
}

// median returns the median of values, of which there is one or more.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// clipAround limits values to a distance from their median.
func clipAround(values []float64, distance float64) []float64 {
	m := median(values)
	clipped := make([]float64, len(values))
	for i, v := range values {
		clipped[i] = max(m-distance, min(m+distance, v))
	}
	return clipped
}
