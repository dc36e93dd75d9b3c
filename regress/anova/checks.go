package anova

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// addChecks adds the checks of the residuals.
func (r *VarianceAnalysis) addChecks(d *Design) {
	r.Normality = shapiroWilk(r.Residuals)
	for i := range d.Variables {
		v := &d.Variables[i]
		if v.Levels == nil {
			continue
		}
		if t, ok := brownForsythe(v.split(r.Residuals)); ok {
			t.Factor = v.Name
			r.Variances = append(r.Variances, t)
		}
	}
}

// split returns the values of the runs of each level.
func (v *Variable) split(values []float64) [][]float64 {
	groups := make([][]float64, len(v.Levels))
	for i, level := range v.Values {
		groups[int(level)] = append(groups[int(level)], values[i])
	}
	return groups
}

// brownForsythe tests for equal variances: a one-way analysis of the distances from the medians. It
// reports false if no group has distances to compare.
func brownForsythe(groups [][]float64) (LevelTest, bool) {
	var all [][]float64
	n, total := 0.0, 0.0
	for _, g := range groups {
		center := median(g)
		var distances []float64
		for _, x := range g {
			distances = append(distances, math.Abs(x-center))
			total += math.Abs(x - center)
		}
		n += float64(len(g))
		all = append(all, distances)
	}
	between, within := 0.0, 0.0
	for _, g := range all {
		mean, deviation := stat.PopMeanStdDev(g, nil)
		between += float64(len(g)) * (mean - total/n) * (mean - total/n)
		within += float64(len(g)) * deviation * deviation
	}
	d1, d2 := float64(len(all)-1), n-float64(len(all))
	if d2 < 1 || !(within > 0) {
		return LevelTest{}, false
	}
	f := between / d1 / (within / d2)
	return LevelTest{Statistic: f, Degrees: len(all) - 1, P: survivalF(f, d1, d2)}, !notFinite(f)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}
