package regress

import (
	"fmt"
	"math"
)

// Transform is applied to a target before anything is fitted.
type Transform string

// The transforms. With Log, targets must be above 0, errors are ratios and the
// prediction is about the median.
const (
	None Transform = "none"
	Log  Transform = "log"
)

func (t Transform) check(target []float64) error {
	for _, y := range target {
		if t == Log && !(y > 0) {
			return fmt.Errorf("%w: target %g has no logarithm", ErrBadExamples, y)
		}
	}
	return nil
}

// apply returns the targets as they are fitted.
func (t Transform) apply(target []float64) []float64 {
	if t != Log {
		return target
	}
	logs := make([]float64, len(target))
	for i, y := range target {
		logs[i] = math.Log(y)
	}
	return logs
}

// invert turns what was fitted back into the unit of the target.
func (t Transform) invert(y float64) float64 {
	if t == Log {
		return math.Exp(y)
	}
	return y
}

// centred holds targets as y = (target - center) * scale: differences from the
// center keep sums exact, the scale keeps squares of huge targets finite.
type centred struct {
	y             []float64
	center, scale float64
	perScale      float64 // 1/scale, as exact: a power of two
}

// center takes targets from their median.
func center(target []float64, byY []int32) centred {
	c := centred{y: make([]float64, len(target)), center: target[byY[len(byY)/2]], scale: 1}
	least, most := target[byY[0]], target[byY[len(byY)-1]]
	if size := max(-least, most); size > 1e50 || size > 0 && size < 1e-50 {
		_, exponent := math.Frexp(size)
		c.scale = math.Ldexp(1, -max(exponent, -1000))
	}
	c.perScale = 1 / c.scale
	for i, y := range target {
		c.y[i] = y*c.scale - c.center*c.scale
	}
	return c
}

// restore turns a centred and scaled target back into its unit.
func (c *centred) restore(y float64) float64 { return y*c.perScale + c.center }
