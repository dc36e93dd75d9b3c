package regress

import (
	"fmt"
	"math"
	"slices"
)

const (
	// DefaultGamma is how fast an Adaptive learns (Gibbs, Candes 2021).
	DefaultGamma = 0.02
	// AdaptiveWindow is how many of the last residuals an Adaptive remembers.
	AdaptiveWindow = 200
)

// Adaptive keeps a bound honest while the world changes (adaptive conformal
// inference: Gibbs, Candes 2021). It is a value: Next returns the state after one
// more outcome, and equal outcomes in equal order give equal states, so that it
// can be replayed from a log and stored as JSON.
//
// After each outcome alpha moves by gamma (1 - confidence - miss), where miss is
// 1 if the outcome lay above the bound: bounds that fail get wider, bounds that
// always hold tighter. The bound is the 1 - alpha quantile of the last residuals.
// With alpha at 0 or below no finite bound can be promised.
type Adaptive struct {
	Confidence float64 `json:"confidence"`
	Gamma      float64 `json:"gamma"`
	Alpha      float64 `json:"alpha"`
	// Residuals are the last AdaptiveWindow at most, oldest first: truth -
	// prediction, or log(truth / prediction) under Log.
	Residuals []float64 `json:"residuals"`
	// Outcomes counts what came, Missed those above their bound, Unpromised those
	// for which there was none.
	Outcomes   int `json:"outcomes"`
	Missed     int `json:"missed"`
	Unpromised int `json:"unpromised"`
}

// NewAdaptive starts from a regressor's calibration, so that the first bounds are
// those of the regressor. A gamma of 0 means DefaultGamma. An error wraps
// ErrBadSettings.
func NewAdaptive(c Calibration, confidence, gamma float64) (Adaptive, error) {
	if !(confidence > 0 && confidence < 1) || !(gamma >= 0 && gamma < 1) {
		return Adaptive{}, fmt.Errorf("%w: confidence is %g and gamma %g, want numbers between 0 and 1", ErrBadSettings, confidence, gamma)
	}
	if gamma == 0 {
		gamma = DefaultGamma
	}
	a := Adaptive{Confidence: confidence, Gamma: gamma, Alpha: 1 - confidence}
	n := len(c.Residuals)
	kept := min(n, AdaptiveWindow)
	for i := range kept {
		a.Residuals = append(a.Residuals, c.Residuals[(2*i+1)*n/(2*kept)]) // evenly spread over sorted ones
	}
	// They age one by one, and not the smallest first.
	random := stream(4)
	order := all(kept)
	random.shuffle(order)
	a.Residuals = pick(a.Residuals, order)
	return a, nil
}

// Next returns the state after an outcome whose residual is known. A residual
// that is not a finite number changes nothing.
func (a Adaptive) Next(residual float64) Adaptive {
	if !finite(residual) {
		return a
	}
	offset, promised := a.Offset()
	miss := 0.0
	switch {
	case !promised:
		a.Unpromised++
	case residual > offset:
		miss = 1
		a.Missed++
	}
	a.Outcomes++
	a.Alpha += a.Gamma * (1 - a.Confidence - miss)
	keep := a.Residuals[max(0, len(a.Residuals)+1-AdaptiveWindow):]
	a.Residuals = append(slices.Clone(keep), residual)
	return a
}

// Offset returns what a prediction is moved by to get its bound, and whether a
// bound can be promised: not with alpha at 0 or below, and not with too few
// residuals for alpha.
func (a Adaptive) Offset() (float64, bool) {
	n := len(a.Residuals)
	if n == 0 || !(a.Alpha > 0) {
		return math.Inf(1), false
	}
	rank := int(math.Ceil(float64(n+1)*(1-a.Alpha) - 1e-9))
	if rank > n {
		return math.Inf(1), false
	}
	return slices.Sorted(slices.Values(a.Residuals))[max(rank, 1)-1], true
}

// AdaptiveBound returns the bound of a point under an Adaptive, as UpperBound
// does: infinite where nothing can be promised, and only a guide for an
// extrapolated point.
func (p *Predictor) AdaptiveBound(point Prediction, a Adaptive) (float64, bool) {
	offset, promised := a.Offset()
	if !promised || !finite(point.Value) {
		return math.Inf(1), false
	}
	if p.manifest.Transform == Log {
		offset = math.Exp(offset)
	}
	bound := p.moved(point, offset)
	return bound, p.promises(point) && finite(bound)
}

// Residual is how far a truth is from a prediction, as Adaptive and Calibration
// count it. Under Log a truth must be above 0; else it is NaN.
func (p *Predictor) Residual(point Prediction, truth float64) float64 {
	if p.manifest.Transform == Log {
		return math.Log(truth / point.Value)
	}
	return truth - point.Value
}
