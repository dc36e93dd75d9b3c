package decide

import (
	"cmp"
	"slices"

	"courier/schemas"
)

// maxChoices bounds the Pareto-optimal choices of a menu.
const maxChoices = 12

// paretoChoices lists the candidates such that none is faster, more accurate and cheaper at once,
// by time. If the request leaves the epochs open, it includes candidates with fewer epochs.
func (p *problem) paretoChoices(candidates []candidate) []schemas.Choice {
	var all []schemas.Choice
	for i := range candidates {
		if c := &candidates[i]; c.isMeasured && !c.Extrapolated {
			all = append(all, p.choicesOf(&c.Alternative)...)
		}
	}
	if t := p.Request.TargetAccuracy; t > 0 {
		all = slices.DeleteFunc(all, func(c schemas.Choice) bool { return choiceAccuracy(&c) < t })
	}
	slices.SortFunc(all, func(x, y schemas.Choice) int {
		return cmp.Or(
			cmp.Compare(*x.PredictedSeconds, *y.PredictedSeconds),
			cmp.Compare(*x.CPUSeconds, *y.CPUSeconds),
			cmp.Compare(choiceAccuracy(&y), choiceAccuracy(&x)),
		)
	})
	kept := all[:0]
	for _, c := range all { // a choice that dominates c comes before it
		if !slices.ContainsFunc(kept, func(k schemas.Choice) bool {
			return choiceAccuracy(&k) >= choiceAccuracy(&c) && *k.CPUSeconds <= *c.CPUSeconds
		}) {
			kept = append(kept, c)
		}
	}
	if n := len(kept); n > maxChoices { // an even selection with the first and the last
		for i := range maxChoices {
			kept[i] = kept[i*(n-1)/(maxChoices-1)]
		}
		kept = kept[:maxChoices]
	}
	return kept
}

// choicesOf returns an alternative as a choice, and with repeatedly halved epochs if the request
// leaves them open.
func (p *problem) choicesOf(alt *schemas.Alternative) (all []schemas.Choice) {
	for v := variantOf(alt); v.epochs > 0; v.epochs /= 2 {
		if t, _ := p.try(schemas.ChoiceUnbeaten, v, p.Request.Confidence); t != nil {
			all = append(all, t.Choice)
		}
		if p.Request.Epochs > 0 {
			break
		}
	}
	return all
}
