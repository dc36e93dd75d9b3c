package study

import (
	"math"
	"slices"
	"strconv"
)

// chartAxis maps numbers, or the indices of names, to a share of its length.
type chartAxis struct {
	low, high float64
	names     []string
}

// numericAxis returns an axis that contains all values, with a margin.
func numericAxis(values []float64) chartAxis {
	a := chartAxis{low: slices.Min(values), high: slices.Max(values)}
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
	return min(max((v/2-a.low/2)/(a.high/2-a.low/2), 0), 1)
}

const maxTicks = 7

func (a *chartAxis) ticks() []float64 {
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

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
