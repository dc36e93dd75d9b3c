package anova

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// maxShapiroRuns is the largest sample for which the approximation of the p value was made.
const maxShapiroRuns = 5000

// Coefficients of algorithm AS R94 (Royston, Applied Statistics 44, 1995), from the constant term.
var (
	shapiroLast      = []float64{0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056}
	shapiroNext      = []float64{0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633}
	shapiroSmallMean = []float64{0.544, -0.39978, 0.025054, -6.714e-4}
	shapiroSmallLog  = []float64{1.3822, -0.77857, 0.062767, -0.0020322}
	shapiroMean      = []float64{-1.5861, -0.31082, -0.083751, 0.0038915}
	shapiroLog       = []float64{-0.4803, -0.082676, 0.0030302}
	shapiroGamma     = []float64{-2.273, 0.459}
)

// shapiroWilk tests whether values are normally distributed (AS R94); nil if they are fewer than 3
// or more than 5000, or all equal.
func shapiroWilk(values []float64) *Normality {
	n := len(values)
	if n < 3 || n > maxShapiroRuns {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	_, deviation := stat.PopMeanStdDev(sorted, nil)
	if !(sorted[n-1]-sorted[0] > 0) {
		return nil
	}
	weighted := 0.0
	for i, a := range shapiroWeights(n) {
		weighted += a * (sorted[n-1-i] - sorted[i])
	}
	w := min(weighted*weighted/(deviation*deviation*float64(n)), 1)
	return &Normality{W: w, P: shapiroP(w, n)}
}

// shapiroWeights returns the weights of the largest minus the smallest value, of the next two, and
// so on.
func shapiroWeights(n int) []float64 {
	if n == 3 {
		return []float64{math.Sqrt(0.5)}
	}
	scores, squares := make([]float64, n/2), 0.0
	for i := range scores {
		scores[i] = distuv.UnitNormal.Quantile((float64(i) + 0.625) / (float64(n) + 0.25))
		squares += 2 * scores[i] * scores[i]
	}
	root := 1 / math.Sqrt(float64(n))
	weights := make([]float64, n/2)
	weights[0] = polynomial(shapiroLast, root) - scores[0]/math.Sqrt(squares)
	exact, left, rest := 1, 1-2*weights[0]*weights[0], squares-2*scores[0]*scores[0]
	if n > 5 {
		weights[1] = polynomial(shapiroNext, root) - scores[1]/math.Sqrt(squares)
		exact, left = 2, left-2*weights[1]*weights[1]
		rest -= 2 * scores[1] * scores[1]
	}
	for i := exact; i < len(weights); i++ {
		weights[i] = -scores[i] / math.Sqrt(rest/left)
	}
	return weights
}

// shapiroP returns the p value of a statistic of n values.
func shapiroP(w float64, n int) float64 {
	if n == 3 {
		p := 6 / math.Pi * (math.Asin(math.Sqrt(w)) - math.Asin(math.Sqrt(0.75)))
		return min(max(p, 0), 1)
	}
	y, logN := math.Log(1-w), math.Log(float64(n))
	var mean, deviation float64
	if n <= 11 {
		gamma := polynomial(shapiroGamma, float64(n))
		if y >= gamma {
			return 0
		}
		y = -math.Log(gamma - y)
		mean = polynomial(shapiroSmallMean, float64(n))
		deviation = math.Exp(polynomial(shapiroSmallLog, float64(n)))
	} else {
		mean, deviation = polynomial(shapiroMean, logN), math.Exp(polynomial(shapiroLog, logN))
	}
	return math.Erfc((y-mean)/deviation/math.Sqrt2) / 2
}

func polynomial(coefficients []float64, x float64) float64 {
	sum := 0.0
	for _, c := range slices.Backward(coefficients) {
		sum = sum*x + c
	}
	return sum
}
