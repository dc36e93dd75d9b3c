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
	Format   int       `json:"format"` // 1
	Subjects []Subject `json:"subjects"`
	// NodeGroups are nodes whose runs differ from other nodes of their type.
	NodeGroups []NodeGroup `json:"node_groups,omitempty"`
}

const format = 1

// Subject is the result of a fit for one model on one dataset.
type Subject struct {
	Model    string         `json:"model"`
	Dataset  string         `json:"dataset,omitempty"`
	Time     *TimeModel     `json:"time,omitempty"`
	Startup  []StartupTimes `json:"startup,omitempty"`
	Accuracy *AccuracyModel `json:"accuracy,omitempty"`
}

// TimeModel predicts the epoch times of a subject.
type TimeModel struct {
	Hyperparameters
	// EpochVariance is the variance of the log seconds of an epoch within its run, and RunVariance
	// of a run within its configuration. Degrees are the degrees of freedom of RunVariance.
	EpochVariance float64 `json:"epoch_variance"`
	RunVariance   float64 `json:"run_variance"`
	Degrees       float64 `json:"degrees"`
	// Configurations that ran, in order.
	Configurations []ConfigurationTimes `json:"configurations"`
}

// ConfigurationTimes summarizes the epoch times of the runs of one configuration.
type ConfigurationTimes struct {
	Configuration
	Runs int `json:"runs"`
	// Mean over runs of the log of the mean epoch seconds, and the sum of Squares
	// about it.
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
	// InverseEpochs is the mean over runs of 1/epochs.
	InverseEpochs float64 `json:"inverse_epochs"`
	// EpochSquares of log epoch seconds about the means of their runs.
	EpochSquares float64   `json:"epoch_squares"`
	EpochFreedom float64   `json:"epoch_freedom"`
	LastAt       time.Time `json:"last_at,omitzero"`
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
	for _, x := range []float64{t.Amplitude, t.Effect, t.RunVariance, t.Degrees} {
		if !(x > 0) || x > 1e6 {
			return fmt.Errorf("hyperparameter or variance is %g, want above 0 and at most 1e6", x)
		}
	}
	for _, x := range t.Lengths {
		if !(x >= 0) || x > 1e6 {
			return fmt.Errorf("length is %g, want 0 to 1e6", x)
		}
	}
	if !(math.Abs(t.Offset) < 1e3) || !(t.EpochVariance >= 0) || t.EpochVariance > 1e6 ||
		!(t.NodeAmplitude >= 0) || t.NodeAmplitude > 1e3 {
		return fmt.Errorf("offset %g, epoch variance %g, node amplitude %g; want up to ±1e3, 0 to 1e6, 0 to 1e3",
			t.Offset, t.EpochVariance, t.NodeAmplitude)
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
		if m.Runs < 1 || !(math.Abs(m.Mean) < 100) || !(m.Squares >= 0) || m.Squares > 1e9 ||
			!(m.InverseEpochs > 0) || m.InverseEpochs > 1 {
			return fmt.Errorf("configuration %d is invalid: %d runs, mean %g, squares %g, inverse epochs %g",
				i, m.Runs, m.Mean, m.Squares, m.InverseEpochs)
		}
	}
	return nil
}

// MaxConfigurations is the maximum number of configurations of a subject. The most recent ones are
// kept; the time of a fit grows with the cube of their number.
const MaxConfigurations = 200

func (t *TimeModel) observations() observations {
	nodes := t.nodeTypes()
	o := observations{several: len(nodes) > 1, degrees: t.Degrees}
	for i := range t.Configurations {
		m := &t.Configurations[i]
		n := float64(m.Runs)
		o.points = append(o.points, pointOf(&m.Configuration, nodes[m.NodeType]))
		o.y = append(o.y, m.Mean)
		o.runs = append(o.runs, t.RunVariance/n)
		o.epochs = append(o.epochs, t.EpochVariance*m.InverseEpochs/n)
	}
	return o
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
