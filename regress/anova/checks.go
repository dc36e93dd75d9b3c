package anova

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// addChecks adds the checks of the residuals, and the tests by ranks.
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
		t := kruskalWallis(v.split(d.Y))
		t.Factor = v.Name
		r.Ranks = append(r.Ranks, t)
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
		mean, deviation := spread(g)
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

// kruskalWallis tests by ranks whether the groups have equal distributions. Ties have their mean
// rank.
func kruskalWallis(groups [][]float64) LevelTest {
	all := slices.Sorted(slices.Values(slices.Concat(groups...)))
	n := float64(len(all))
	rank, ties := map[float64]float64{}, 0.0
	for i := 0; i < len(all); {
		k := i
		for k < len(all) && all[k] == all[i] {
			k++
		}
		rank[all[i]] = float64(i+k+1) / 2
		tied := float64(k - i)
		ties += tied*tied*tied - tied
		i = k
	}
	h := -3 * (n + 1)
	for _, g := range groups {
		sum := 0.0
		for _, x := range g {
			sum += rank[x]
		}
		h += 12 / (n * (n + 1)) * sum * sum / float64(len(g))
	}
	h = max(h/(1-ties/(n*n*n-n)), 0)
	degrees := len(groups) - 1
	return LevelTest{
		Statistic: h,
		Degrees:   degrees,
		P:         mathext.GammaIncRegComp(float64(degrees)/2, h/2),
	}
}
