package evidence

import "time"

// Regressor is the result of a fit. It is plain data: decoded from JSON it
// gives the same predictions. Compile returns its predictor.
type Regressor struct {
	Format   int       `json:"format"` // 2
	Subjects []Subject `json:"subjects"`
	// NodeGroups are nodes whose runs differ from other nodes of their type.
	NodeGroups []NodeGroup `json:"node_groups,omitempty"`
	// SetAside are the runs that were not believed, wholly or in part, at most MaxSetAside.
	SetAside []SetAside `json:"set_aside,omitempty"`
}

// MaxSetAside is the maximum number of runs that a regressor names as set aside, the last ones.
const MaxSetAside = 200

// SetAside is a run that was not believed, and why.
type SetAside struct {
	Run    string `json:"run"`    // its Job, or its ID
	Reason string `json:"reason"` // a sentence for its owner, without the run's name
}

const format = 2

// Subject is the result of a fit for one model on one dataset.
type Subject struct {
	Model   string     `json:"model"`
	Dataset string     `json:"dataset,omitempty"`
	Time    *TimeModel `json:"time,omitempty"`
	// Startup has the time from the start to the first epoch on each node type, as a curve of one epoch.
	Startup  []ConfigurationTimes `json:"startup,omitempty"`
	Accuracy *AccuracyModel       `json:"accuracy,omitempty"`
	// KeptSince is when Time was fitted, if later refits were worse (State.KeepBetter).
	KeptSince time.Time `json:"kept_since,omitzero"`
	// Errors of predictions of runs that were held out from a fit.
	HeldOutTimes      HeldOut `json:"held_out_times,omitzero"`
	HeldOutAccuracies HeldOut `json:"held_out_accuracies,omitzero"`
}

// TimeModel predicts the times of a subject.
type TimeModel struct {
	Hyperparameters
	// PaceVariance is how much the log pace changes from one octave of epochs to the next.
	PaceVariance float64 `json:"pace_variance"`
	// EpochVariance of the log seconds of an epoch about the curve of its configuration, and the
	// CorrelatedShare of it (an AR(1) process).
	EpochVariance   float64 `json:"epoch_variance"`
	CorrelatedShare float64 `json:"correlated_share"`
	// Configurations that ran, in order.
	Configurations []ConfigurationTimes `json:"configurations"`
}

// ConfigurationTimes is the curve of cumulative seconds of one configuration.
type ConfigurationTimes struct {
	Configuration
	Runs   int       `json:"runs"`
	LastAt time.Time `json:"last_at,omitzero"`
	// Pace is the log of the seconds per epoch after the first by the runs of the configuration alone,
	// with its variance.
	Pace         float64 `json:"pace"`
	PaceVariance float64 `json:"pace_variance"`
	// Points of the grid of epochs up to the longest run. At each point, of the log of the seconds
	// until then: location, variance of one run, degrees of freedom, variance of the location.
	Points           []int     `json:"points"`
	Location         []float64 `json:"location"`
	RunVariance      []float64 `json:"run_variance"`
	Degrees          []float64 `json:"degrees"`
	LocationVariance []float64 `json:"location_variance"`
	// EpochSquares of log epoch seconds about the curve, within runs.
	EpochSquares float64 `json:"epoch_squares"`
	EpochFreedom float64 `json:"epoch_freedom"`
	// OddVariance is the variance that odd epochs add to an epoch, relative to the square of its time on
	// the curve.
	OddVariance float64 `json:"odd_variance,omitempty"`
}

// HeldOut is the mean error of predictions of runs by others.
type HeldOut struct {
	Runs  int     `json:"runs"`
	Error float64 `json:"error"`
}

// add adds the mean error of a number of runs, which may be 0.
func (h *HeldOut) add(runs int, e float64) {
	if runs == 0 {
		return
	}
	h.Runs += runs
	h.Error += (e - h.Error) * float64(runs) / float64(h.Runs)
}

// HeldOut returns the errors of predictions of runs that were held out from the fit: of times
// |predicted/measured - 1|, of accuracies the mean over epochs of |predicted - measured|.
func (r *Regressor) HeldOut() (times, accuracies HeldOut) {
	for i := range r.Subjects {
		s := &r.Subjects[i]
		times.add(s.HeldOutTimes.Runs, s.HeldOutTimes.Error)
		accuracies.add(s.HeldOutAccuracies.Runs, s.HeldOutAccuracies.Error)
	}
	return times, accuracies
}
