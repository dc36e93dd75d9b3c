package anova

import (
	"cmp"
	"slices"
)

// tied is the difference, as a share of the range, up to which aligned responses have the same
// rank. It is above the rounding errors of the alignment.
const tied = 1e-9

// alignedRank adds the test of the aligned rank transform (Wobbrock et al., CHI 2011) to a term of
// factors: the response without the other terms, which is the residual of the model plus the type
// II effect of the term, is replaced by its ranks, whose analysis tests this term only. In a
// balanced design with all interactions the effect is that of Wobbrock et al.: a sum of means of
// cells.
func (m *linearModel) alignedRank(t term, others, own orthogonalBasis, to *Term) {
	if slices.ContainsFunc(t, func(v int) bool { return m.design.Variables[v].Levels == nil }) {
		return
	}
	aligned := slices.Clone(m.rest)
	rest := others.residuals(m.design.Y)
	for _, q := range own {
		subtract(aligned, -dot(q, rest), q)
	}

	ranks := meanRanks(aligned)
	squares := squaresIn(own, others.residuals(ranks))
	rest = m.space.residuals(ranks)
	degrees := float64(m.residualDegrees)
	f := squares / float64(len(own)) / (dot(rest, rest) / degrees)
	if notFinite(f) || f > maxRobustF {
		return
	}
	p := survivalF(f, float64(len(own)), degrees)
	to.AlignedRankF, to.AlignedRankP = &f, &p
}

// meanRanks returns the ranks of values from 1. Ties have their mean rank.
func meanRanks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	near := tied * (values[order[len(order)-1]] - values[order[0]])
	ranks := make([]float64, len(values))
	for i := 0; i < len(order); {
		k := i + 1
		for k < len(order) && values[order[k]]-values[order[k-1]] <= near {
			k++
		}
		for _, run := range order[i:k] {
			ranks[run] = float64(i+k+1) / 2
		}
		i = k
	}
	return ranks
}
