package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

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
	Model    string         `json:"model"`
	Dataset  string         `json:"dataset,omitempty"`
	Time     *TimeModel     `json:"time,omitempty"`
	Startup  []StartupTimes `json:"startup,omitempty"`
	Accuracy *AccuracyModel `json:"accuracy,omitempty"`
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
	// EpochVariance of the log seconds of an epoch about the curve of its configuration, the
	// CorrelatedShare of it (an AR(1) process), and SlopeVariance of a run against its curve.
	EpochVariance   float64 `json:"epoch_variance"`
	CorrelatedShare float64 `json:"correlated_share"`
	SlopeVariance   float64 `json:"slope_variance"`
	// LoadVariance of the log pace of a run because the foreign load changes after its start.
	LoadVariance float64 `json:"load_variance,omitempty"`
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
}

// NodeGroup is a node whose runs differ from other nodes with the same known hardware. It
// is fitted as a type of its own.
type NodeGroup struct {
	Node     string `json:"node"`
	NodeType string `json:"node_type,omitempty"` // node type given by the caller
	Group    string `json:"group"`               // node type of its runs in fits
}

// ErrInvalid is wrapped by the errors of Compile.
var ErrInvalid = errors.New("invalid regressor")

// check returns an error for a regressor that Fit cannot produce. JSON has no infinite numbers.
func (r *Regressor) check() error {
	if r.Format != format {
		return fmt.Errorf("%w: format %d, want %d", ErrInvalid, r.Format, format)
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		part := ""
		switch {
		case s.Time != nil && !s.Time.isValid(s):
			part = "time"
		case slices.ContainsFunc(s.Startup, func(u StartupTimes) bool { return !u.isValid() }):
			part = "start-up"
		case s.Accuracy != nil && !s.Accuracy.isValid():
			part = "accuracy"
		default:
			continue
		}
		return fmt.Errorf("%w: model %q, dataset %q: its %s has values that no fit gives",
			ErrInvalid, s.Model, s.Dataset, part)
	}
	return nil
}

// arePositive reports whether variances, degrees of freedom or lengths are above 0 and plausible.
func arePositive(values ...float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return !(x > 0) || x > 1e6 })
}

// rises reports whether each value is above the previous one.
func rises[T cmp.Ordered](values []T) bool {
	for i := range values[min(1, len(values)):] {
		if values[i+1] <= values[i] {
			return false
		}
	}
	return true
}

func (t *TimeModel) isValid(s *Subject) bool {
	n := len(t.Configurations)
	if n == 0 || n > MaxConfigurations || !(t.LoadVariance >= 0 && t.LoadVariance <= 1e6) ||
		!arePositive(append(t.Lengths[:], t.Balance, t.Amplitude, t.NodeAmplitude, t.Effect, t.PaceVariance,
			t.EpochVariance, t.CorrelatedShare, t.SlopeVariance)...) {
		return false
	}
	for i := range t.Configurations {
		c := &t.Configurations[i]
		isOwn := c.Model == s.Model && c.Dataset == s.Dataset
		isNext := i == 0 || t.Configurations[i-1].compare(c.Configuration) < 0
		if !isOwn || !isNext || !c.valid() || c.Banded() != c.Configuration || !c.hasCurve() {
			return false
		}
	}
	return true
}

// hasCurve reports whether the curve of the configuration is one of a fit.
func (c *ConfigurationTimes) hasCurve() bool {
	n := len(c.Points)
	return c.Runs > 0 && math.Abs(c.Pace) < 100 && arePositive(c.PaceVariance) &&
		n > 0 && c.Points[0] > 0 && rises(c.Points) &&
		len(c.Location) == n && slices.IsSorted(c.Location) && c.Location[0] > -100 && c.Location[n-1] < 100 &&
		len(c.RunVariance) == n && arePositive(c.RunVariance...) &&
		len(c.Degrees) == n && arePositive(c.Degrees...) &&
		len(c.LocationVariance) == n && arePositive(c.LocationVariance...)
}

func (s *StartupTimes) isValid() bool {
	return s.Runs > 0 && math.Abs(s.Location) < 100 && s.LocationVariance >= 0 &&
		arePositive(s.Variance, s.Degrees)
}

func (m *AccuracyModel) isValid() bool {
	if n := len(m.Groups); n == 0 || n > maxGroups || !arePositive(m.Prior) {
		return false
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		isNext := i == 0 || compareGroups(m.Groups[i-1], *g) < 0
		isInvalid := func(r Records) bool { return !r.isValid() }
		if !isNext || g.BatchSize < 1 || len(g.Runs) == 0 || slices.ContainsFunc(g.Runs, isInvalid) {
			return false
		}
	}
	return true
}

func (r *Records) isValid() bool {
	n := len(r.Epochs)
	return n > 0 && n <= maxRecords && r.Epochs[0] > 0 && rises(r.Epochs) && r.Length >= r.Epochs[n-1] &&
		len(r.Accuracy) == n && r.Accuracy[0] >= 0 && rises(r.Accuracy) && r.Accuracy[n-1] <= 1
}
