package evidence

import "time"

// Residual is the difference between a finished run and its prediction by a base.
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
