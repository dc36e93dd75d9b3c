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
			all = append(all, p.of(c.Workers).choicesOf(c)...)
		}
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

// choicesOf returns a candidate as a choice, and with repeatedly halved epochs if the request leaves them
// open, as long as it reaches the target accuracy.
func (p *problem) choicesOf(c *candidate) (all []schemas.Choice) {
	for some := *c; accuracy(&some.Alternative) >= p.Request.TargetAccuracy; {
		all = append(all, some.choice(schemas.ChoiceUnbeaten))
		v := variantOf(&some.Alternative)
		if v.epochs /= 2; p.Request.Epochs > 0 || v.epochs == 0 {
			break
		}
		some = p.variantOn(c.forecast, v, p.Request.Confidence)
	}
	return all
}
