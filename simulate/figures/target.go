package figures

import (
	"math"
	"strconv"
	"strings"
)

// Target is the target of a figure. The zero value is no target.
type Target struct {
	value     float64
	tolerance float64
	isSet     bool
}

// Bar returns a target that must be reached exactly: a published result or a decided bar.
func Bar(value float64) Target {
	return Target{value: value, isSet: true}
}

// Reported returns a target that was measured elsewhere and printed with as many digits as the
// value has, at least two decimals: 0.5 stands for 50 %. Half a unit of the last digit is tolerated.
func Reported(value float64) Target {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(value, 'f', -1, 64), ".")
	return Within(value, 0.5*math.Pow10(-max(2, len(decimals))))
}

// Within returns a target that is met up to a tolerance.
func Within(value, tolerance float64) Target {
	return Target{value: value, tolerance: tolerance, isSet: true}
}

// rounding is the tolerated error of computations.
const rounding = 1e-9

// isMet reports whether a figure of a kind meets the target.
func (t Target) isMet(k Kind, reached float64) bool {
	tolerance := t.tolerance + rounding
	switch k {
	case Limit, Count:
		return reached <= t.value+tolerance
	case Seconds:
		return math.Abs(reached-t.value) <= tolerance
	}
	return reached >= t.value-tolerance
}
