package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"courier/regress/anova"
)

// clearTerms returns the terms with a p value below the limit, the largest share of the variance
// first.
func (a *Analysis) clearTerms() []anova.Term {
	var terms []anova.Term
	for _, t := range a.Terms {
		if t.P < anova.Unusual {
			terms = append(terms, t)
		}
	}
	slices.SortStableFunc(terms, func(x, y anova.Term) int {
		return cmp.Or(cmp.Compare(y.Omega2, x.Omega2), cmp.Compare(x.P, y.P))
	})
	return terms
}

// Influences describes in sentences what influences the response most.
func (a *Analysis) Influences() []string {
	terms := a.clearTerms()
	if len(terms) == 0 {
		return []string{fmt.Sprintf("No term of the model has a clear influence on %s: all p are"+
			" %.2f or more.", a.Response, anova.Unusual)}
	}
	first := terms[0]
	lines := []string{fmt.Sprintf("%s influences %s most. It explains %s of the variance, and %s"+
		" (95 %% interval %s to %s) of the part that no other term explains (p %s).",
		first.Name, a.Response, wholeShare(&first), percent(first.PartialOmega2),
		percent(first.EffectLow), percent(first.EffectHigh), Probability(first.P))}
	var others []string
	for _, t := range terms[1:] {
		others = append(others, fmt.Sprintf("%s (%s)", t.Name, wholeShare(&t)))
	}
	if len(others) > 0 {
		lines = append(lines, "Next by their share of the variance: "+strings.Join(others, ", ")+".")
	}
	return append(lines, fmt.Sprintf("The model explains %s of the variance (R2; adjusted for its"+
		" parameters %s).", percent(a.R2), percent(a.AdjustedR2)))
}

// wholeShare formats the share of the whole variance. It is at most the partial share, which the
// estimates do not ensure.
func wholeShare(t *anova.Term) string { return percent(min(t.Omega2, t.PartialOmega2)) }

func percent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "under 0.1 %"
	}
	if share > 0 && share < 0.0995 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
