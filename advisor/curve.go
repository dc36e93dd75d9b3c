package advisor

import (
	"math"

	"courier/schemas"
)

// level is the accuracy after some epochs.
type level struct {
	epochs   uint32
	accuracy float64
}

// curve is the accuracy of an alternative over its epochs. It never falls: what
// a later epoch loses is noise, and the best epoch can be kept.
type curve struct{ levels []level }

// levelsUpTo bounds how finely a curve is looked at.
const levelsUpTo = 64

// fill predicts the curve up to a number of epochs; with only, just its end.
func (c *curve) fill(r *Regressor, f schemas.Features, epochs uint32, only bool, m *memory) {
	c.levels = c.levels[:0]
	best, ratio := 0.0, stepTo(epochs)
	next := uint32(1)
	if only {
		next = epochs
	}
	for n := next; n <= epochs; n = next {
		f.EpochsDone = n
		p, ok := r.predict(&f, m)
		if !ok {
			return
		}
		if value := min(1, max(0, p.Value)); value > best || len(c.levels) == 0 {
			best = value
		}
		c.levels = append(c.levels, level{n, best})
		if n == epochs {
			return
		}
		next = min(epochs, max(n+1, uint32(math.Ceil(float64(n)*ratio))))
	}
}

// stepTo is the ratio of neighbouring levels that reaches epochs in levelsUpTo
// steps.
func stepTo(epochs uint32) float64 {
	if epochs <= levelsUpTo {
		return 1
	}
	return math.Pow(float64(epochs)/levelsUpTo, 2.0/levelsUpTo)
}

// at returns the accuracy after some epochs. More epochs than any example had
// are as good as the most: that is careful, and no promise of time needs it.
func (c *curve) at(epochs uint32) (accuracy float64) {
	for _, l := range c.levels {
		if l.epochs > epochs && accuracy > 0 {
			break
		}
		accuracy = l.accuracy
	}
	return accuracy
}
