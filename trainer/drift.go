package trainer

import "math"

// driftWindow is how many epochs in a row are looked at, and driftErrors by how
// many standard errors their mean must be off. A first, blunt detector.
const (
	driftWindow = 20
	driftErrors = 3
)

// Drift watches whether epochs still last as predicted.
type Drift struct {
	residuals []float64 // log(measured / predicted), the last driftWindow of them
}

// Add takes the next epoch and reports whether the mean log residual of the last
// 20 epochs is more than 3 standard errors from 0; deviation is the standard
// deviation of the regressor's own residuals.
func (d *Drift) Add(measured, predicted, deviation float64) (mean float64, drifted bool) {
	if !(measured > 0 && predicted > 0) {
		return 0, false
	}
	d.residuals = append(d.residuals, math.Log(measured/predicted))
	if len(d.residuals) > driftWindow {
		d.residuals = d.residuals[1:]
	}
	if len(d.residuals) < driftWindow {
		return 0, false
	}
	for _, r := range d.residuals {
		mean += r / driftWindow
	}
	// A regressor that fits its examples perfectly still errs by a hundredth.
	standardError := max(deviation, 0.01) / math.Sqrt(driftWindow)
	return mean, math.Abs(mean) > driftErrors*standardError
}

// Reset forgets what was seen: another regressor predicts from now on.
func (d *Drift) Reset() { d.residuals = nil }

// deviation returns the standard deviation of numbers; 0 for fewer than two.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	n, mean, sum := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / (n - 1))
}
