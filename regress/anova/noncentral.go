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
	if noncentralF(f, d1, d2, 0) <= p {
		return 0
	}
	low, high := 0.0, max(1, d1*f)
	for noncentralF(f, d1, d2, high) > p && high < 1e15 {
		low, high = high, 2*high
	}
	for range 200 {
		middle := (low + high) / 2
		if middle == low || middle == high || high-low < 1e-13*high {
			break
		}
		if noncentralF(f, d1, d2, middle) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// largeNoncentrality is where the relative spread of the numerator, 2/sqrt(noncentrality), is
// negligible.
const largeNoncentrality = 1e8

// noncentralF returns the probability that a noncentral F distributed number is at most f: the
// Poisson mixture of beta distributions, summed from its mode (Benton, Krishnamoorthy, 2003).
func noncentralF(f, d1, d2, noncentrality float64) float64 {
	if !(f > 0) {
		return 0
	}
	if noncentrality > largeNoncentrality {
		return mathext.GammaIncRegComp(d2/2, d2/2*(d1+noncentrality)/(d1*f))
	}
	half, b := noncentrality/2, d2/2
	mode := math.Floor(half)
	a := d1/2 + mode
	// x and y = 1-x are computed separately, since y may be tiny.
	x, y := d1*f/(d1*f+d2), d2/(d1*f+d2)

	weight := math.Exp(-half + mode*logOrZero(half) - logGamma(mode+1))
	beta := mathext.RegIncBeta(a, b, x)
	if x > 0.5 {
		beta = 1 - mathext.RegIncBeta(b, a, y)
	}
	// step is the difference between the betas of two consecutive numbers.
	step := math.Exp(logGamma(a+b) - logGamma(a+1) - logGamma(b) + a*math.Log(x) + b*math.Log(y))
	sum := weight * beta
	sum += sumUp(weight, beta, step, mode, half, a, b, x)
	sum += sumDown(weight, beta, step, mode, half, a, b, x)
	return min(max(sum, 0), 1)
}

// negligible is the share of a sum below which its last terms are left out.
const negligible = 1e-18

// sumUp sums the terms above the mode.
func sumUp(weight, beta, step, k, half, a, b, x float64) float64 {
	sum := 0.0
	for {
		k++
		weight *= half / k
		beta -= step
		step *= x * (a + b) / (a + 1)
		a++
		if !(weight*beta > negligible) {
			return sum
		}
		sum += weight * beta
	}
}

// sumDown sums the terms below the mode.
func sumDown(weight, beta, step, k, half, a, b, x float64) float64 {
	sum := 0.0
	for k > 0 {
		weight *= k / half
		k--
		step *= a / (x * (a + b - 1))
		a--
		beta = min(beta+step, 1)
		if !(weight > negligible) {
			break
		}
		sum += weight * beta
	}
	return sum
}

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// logOrZero returns the logarithm; 0 for 0, whose power 0 is 1.
func logOrZero(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Log(x)
}
