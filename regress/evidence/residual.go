package evidence

import (
	"math"
	"time"
)

// MaxResiduals is the maximum number of residuals that are kept.
const MaxResiduals = 200

// Residual is the difference between a finished run and its prediction without corrections.
type Residual struct {
	Configuration
	// At is when the run ended, and StartedAt when it began.
	At        time.Time `json:"at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Value is the log of the measured over the predicted epoch seconds.
	Value float64 `json:"value"`
	// Variance that the predictor expected, and the part Shared by all runs of the
	// configuration.
	Variance float64 `json:"variance"`
	Shared   float64 `json:"shared"`
}

// clipped limits a deviation to a number of standard deviations, so that one disturbed run is never
// mistaken for a change.
func (r *Residual) clipped(deviation, most float64) float64 {
	most *= math.Sqrt(r.Variance)
	return max(-most, min(most, deviation))
}
