package study

import (
	"math"
	"slices"
	"strconv"
)

// chartAxis maps numbers, or the indices of names, to a share of its length.
type chartAxis struct {
	low, high float64
	log       bool
	names     []string
}

// numericAxis returns an axis that contains all values, with a margin. It is logarithmic if wanted
// and if the values span more than a factor of 20.
func numericAxis(values []float64, mayBeLog bool) chartAxis {
	if len(values) == 0 {
		return chartAxis{low: 0, high: 1}
	}
	a := chartAxis{low: slices.Min(values), high: slices.Max(values)}
	if mayBeLog && a.low > 0 && a.high/20 > a.low {
		edge := math.Exp(0.04 * (math.Log(a.high) - math.Log(a.low)))
		a.low = max(a.low/edge, math.SmallestNonzeroFloat64)
		return chartAxis{low: a.low, high: min(a.high*edge, math.MaxFloat64), log: true}
	}
	margin := 0.05 * (a.high/2 - a.low/2) * 2
	if !(margin > 1e-12*max(math.Abs(a.low), math.Abs(a.high))) {
		margin = max(0.1*math.Abs(a.low), 1e-9)
	}
	a.low, a.high = max(a.low-margin, -math.MaxFloat64), min(a.high+margin, math.MaxFloat64)
	return a
}

func namedAxis(names []string) chartAxis {
	return chartAxis{low: -0.5, high: float64(len(names)) - 0.5, names: names}
}

// share returns the position of a value between the ends of the axis, from 0 to 1. Halves prevent
// that the difference of large numbers overflows.
func (a *chartAxis) share(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return min(max((v/2-low/2)/(high/2-low/2), 0), 1)
}

const maxTicks = 7

func (a *chartAxis) ticks() []float64 {
	if a.log {
		if all := a.logTicks(); len(all) > 1 {
			return all
		}
	}
	span := (a.high/2 - a.low/2) / maxTicks * 2
	step := math.Pow(10, math.Ceil(math.Log10(span)))
	for _, part := range []float64{5, 2} {
		if step/part >= span {
			step /= part
			break
		}
	}
	var all []float64
	first := math.Ceil(a.low / step)
	for i := range maxTicks + 2 {
		if v := (first + float64(i)) * step; v <= a.high && isNumber(v) {
			all = append(all, v)
		}
	}
	return all
}

// logTicks returns the numbers 1, 2 and 5 times a power of ten, or fewer of them.
func (a *chartAxis) logTicks() []float64 {
	low, high := math.Floor(math.Log10(a.low)), math.Log10(a.high)
	every := 1.0
	digits := []float64{1, 2, 5}
	if decades := high - math.Log10(a.low); decades > 2.2 {
		digits = digits[:1]
		every = max(1, math.Ceil(decades/maxTicks))
	}
	var all []float64
	for power := low; power <= high; power += every {
		for _, digit := range digits {
			if v := digit * math.Pow(10, power); v >= a.low && v <= a.high {
				all = append(all, v)
			}
		}
	}
	return all
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
