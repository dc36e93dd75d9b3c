package anova

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// survivalF returns the probability that an F distributed number exceeds f.
func survivalF(f, d1, d2 float64) float64 {
	if !(f > 0) {
		return 1
	}
	return mathext.RegIncBeta(d2/2, d1/2, d2/(d2+d1*f))
}

// noncentrality returns the interval of the noncentrality of an F statistic: the values for which f
// is at the upper or the lower quantile of its distribution (Steiger, 2004).
func noncentrality(f, d1, d2, confidence float64) (low, high float64) {
	tail := (1 - confidence) / 2
	return noncentralityAt(f, d1, d2, 1-tail), noncentralityAt(f, d1, d2, tail)
}

// noncentralityAt returns the noncentrality for which the probability of at most f is p; 0 if no
// noncentrality has such a high probability.
func noncentralityAt(f, d1, d2, p float64) float64 {
	if 1-survivalF(f, d1, d2) <= p {
		return 0
	}
	low, high := 0.0, max(1, d1*f)
	for noncentralF(f, d1, d2, high) > p && high < 1e15 {
		low, high = high, 2*high
	}
	for high-low > 1e-12*high {
		middle := (low + high) / 2
		if noncentralF(f, d1, d2, middle) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// largeNoncentrality is from where the error of Patnaik's approximation is negligible.
const largeNoncentrality = 1e5

// noncentralF returns the probability that a noncentral F distributed number is at most f: the
// Poisson mixture of beta distributions, within ten standard deviations of its mean. For a large
// noncentrality, the numerator is a multiple of a chi-squared number (Patnaik, 1949).
func noncentralF(f, d1, d2, noncentrality float64) float64 {
	if noncentrality > largeNoncentrality {
		multiple := (d1 + noncentrality) / d1
		return 1 - survivalF(f/multiple, (d1+noncentrality)*(d1+noncentrality)/(d1+2*noncentrality), d2)
	}
	mean := noncentrality / 2
	reach := 10*math.Sqrt(mean) + 30
	sum := 0.0
	for k := max(0, math.Floor(mean-reach)); k < mean+reach; k++ {
		logGamma, _ := math.Lgamma(k + 1)
		weight := math.Exp(k*math.Log(mean) - mean - logGamma)
		sum += weight * (1 - mathext.RegIncBeta(d2/2, d1/2+k, d2/(d1*f+d2)))
	}
	return sum
}
