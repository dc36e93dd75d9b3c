package evidence

import (
	"errors"
	"fmt"
	"math"
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

// check returns an error for a curve that a fit cannot produce.
func (c *ConfigurationTimes) check() error {
	n := len(c.Points)
	if !(math.Abs(c.Pace) < 100) || !(c.PaceVariance > 0) || c.PaceVariance > 1e6 {
		return fmt.Errorf("pace %g with variance %g", c.Pace, c.PaceVariance)
	}
	if c.Runs < 1 || n == 0 || len(c.Location) != n || len(c.RunVariance) != n ||
		len(c.Degrees) != n || len(c.LocationVariance) != n {
		return fmt.Errorf("%d runs, and %d points with %d locations", c.Runs, n, len(c.Location))
	}
	for k := range c.Points {
		if c.Points[k] < 1 || k > 0 && (c.Points[k] <= c.Points[k-1] ||
			!(c.Location[k] >= c.Location[k-1])) || !(math.Abs(c.Location[k]) < 100) {
			return fmt.Errorf("point %d is out of order", k)
		}
		for _, x := range []float64{c.RunVariance[k], c.Degrees[k], c.LocationVariance[k]} {
			if !(x > 0) || x > 1e6 {
				return fmt.Errorf("variance or degrees at point %d are %g, want above 0", k, x)
			}
		}
	}
	return nil
}

// ErrInvalid is wrapped by the errors of Compile.
var ErrInvalid = errors.New("invalid regressor")

// check returns an error for a regressor that Fit cannot produce.
func (r *Regressor) check() error {
	if r.Format != format {
		return fmt.Errorf("%w: format %d, want %d", ErrInvalid, r.Format, format)
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if err := s.check(); err != nil {
			return fmt.Errorf("%w: model %q, dataset %q: %w", ErrInvalid, s.Model, s.Dataset, err)
		}
	}
	return nil
}

func (s *Subject) check() error {
	if s.Time != nil {
		if err := s.Time.check(s); err != nil {
			return fmt.Errorf("time: %w", err)
		}
	}
	for i := range s.Startup {
		if err := s.Startup[i].check(); err != nil {
			return fmt.Errorf("startup on %q: %w", s.Startup[i].NodeType, err)
		}
	}
	if s.Accuracy != nil {
		if err := s.Accuracy.check(); err != nil {
			return fmt.Errorf("accuracy: %w", err)
		}
	}
	return nil
}

func (t *TimeModel) check(s *Subject) error {
	if n := len(t.Configurations); n == 0 || n > MaxConfigurations {
		return fmt.Errorf("%d configurations, want 1 to %d", n, MaxConfigurations)
	}
	for _, x := range append(t.Lengths[:], t.Balance, t.Amplitude, t.NodeAmplitude, t.Effect,
		t.PaceVariance, t.EpochVariance, t.CorrelatedShare, t.SlopeVariance) {
		if !(x > 0) || x > 1e6 {
			return fmt.Errorf("hyperparameter or variance is %g, want above 0 and at most 1e6", x)
		}
	}
	if !(t.LoadVariance >= 0) || t.LoadVariance > 1e6 {
		return fmt.Errorf("variance of loads is %g, want 0 to 1e6", t.LoadVariance)
	}
	for i := range t.Configurations {
		m := &t.Configurations[i]
		isOwn := m.Model == s.Model && m.Dataset == s.Dataset
		if !isOwn || !m.valid() || m.Banded() != m.Configuration {
			return fmt.Errorf("configuration %d is invalid or belongs to another model", i)
		}
		if i > 0 && t.Configurations[i-1].compare(m.Configuration) >= 0 {
			return fmt.Errorf("configuration %d is out of order", i)
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("configuration %d: %w", i, err)
		}
	}
	return nil
}

// nodeTypes numbers the node types of the configurations.
func (t *TimeModel) nodeTypes() map[string]int {
	nodes := map[string]int{}
	for i := range t.Configurations {
		name := t.Configurations[i].NodeType
		if _, ok := nodes[name]; !ok {
			nodes[name] = len(nodes)
		}
	}
	return nodes
}

// NodeGroup is a node whose runs differ from other nodes with the same known hardware. It
// is fitted as a type of its own.
type NodeGroup struct {
	Node     string `json:"node"`
	NodeType string `json:"node_type,omitempty"` // node type given by the caller
	Group    string `json:"group"`               // node type of its runs in fits
}
