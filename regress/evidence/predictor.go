package evidence

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Predictor predicts from a regressor. It is immutable and safe for concurrent use.
type Predictor struct {
	subjects map[subject]*compiled
	groups   map[nodeKey]string
}

// compiled is a subject ready for predictions.
type compiled struct {
	*Subject
	time     *timePredictor     // nil if no run was timed
	accuracy *accuracyPredictor // nil without accuracies
}

// Compile returns the predictor of a regressor as a fit returns it, which must not be changed
// afterwards.
func Compile(h *Regressor) (*Predictor, error) {
	if h == nil {
		return nil, errors.New("compile regressor: there is none")
	}
	if h.Format != format {
		return nil, fmt.Errorf("compile regressor: format %d, want %d", h.Format, format)
	}
	p := &Predictor{subjects: map[subject]*compiled{}, groups: groupMap(h.NodeGroups)}
	for i := range h.Subjects {
		s := &h.Subjects[i]
		c := &compiled{Subject: s}
		if s.Time != nil {
			var ok bool
			if c.time, ok = newTimePredictor(s.Time); !ok {
				return nil, fmt.Errorf("model %q, dataset %q: covariance is not positive definite",
					s.Model, s.Dataset)
			}
		}
		if s.Accuracy != nil {
			c.accuracy = newAccuracyPredictor(s.Accuracy)
		}
		p.subjects[subject{s.Model, s.Dataset}] = c
	}
	return p, nil
}

// Startup predicts the seconds from the start of a run to its first epoch. It is unknown if no
// start-up of the model was ever measured.
func (p *Predictor) Startup(c Configuration) Distribution {
	return p.of(&c).startup(c.NodeType)
}

// of returns the subject of a configuration; an empty one if it is unknown.
func (p *Predictor) of(c *Configuration) *compiled {
	if s := p.subjects[c.subject()]; s != nil {
		return s
	}
	return &compiled{Subject: &Subject{}}
}

// NodeTypes returns the node types with timed runs of a model, unordered.
func (p *Predictor) NodeTypes(c Configuration) []string {
	if t := p.of(&c).time; t != nil {
		return slices.Collect(maps.Keys(t.reaches))
	}
	return nil
}

// StartupRuns returns the number of runs of a model with a measured start-up: on the node type, and
// on all.
func (p *Predictor) StartupRuns(c Configuration) (onNodeType, all int) {
	for _, u := range p.of(&c).Startup {
		if all += u.Runs; u.NodeType == c.NodeType {
			onNodeType = u.Runs
		}
	}
	return onNodeType, all
}

// NodeType returns the node type for configurations on a node: the given type, unless the runs of
// the node differ from other nodes of its type.
func (p *Predictor) NodeType(node, nodeType string) string {
	if g, ok := p.groups[nodeKey{node, nodeType}]; ok {
		return g
	}
	return nodeType
}

// banded returns the configuration of a run with banded load and the node type of the predictor.
func (p *Predictor) banded(r *Run) Configuration {
	c := r.Banded()
	c.NodeType = p.NodeType(r.Node, r.NodeType)
	return c
}

// EpochTime is the predicted time of some epochs of a run.
type EpochTime struct {
	// Location of the log of their mean seconds, and Variance of the log of their sum.
	Location float64
	Variance float64
	Degrees  float64
	Support  Support
	Counts   RunCounts
	// Pace is the log ratio of a running job's own pace to the curve of past runs, for the epochs
	// that are left; 0 without own epochs.
	Pace float64
}

// Known reports whether there is a prediction.
func (e *EpochTime) Known() bool { return e.Variance > 0 }

// Seconds returns the distribution of the total seconds of the epochs, whose number is given.
func (e *EpochTime) Seconds(epochs int) Distribution {
	if !e.Known() {
		return Distribution{}
	}
	return Distribution{math.Log(float64(max(epochs, 1))) + e.Location, math.Sqrt(e.Variance), e.Degrees}
}

// Epochs predicts the first epochs of a run of a configuration. It is unknown if the model never ran on
// the node type.
func (p *Predictor) Epochs(c Configuration, epochs int) EpochTime {
	t := p.times(c)
	return t.epochs(epochs)
}

// times returns the predicted times of a configuration, or why there are none.
func (p *Predictor) times(c Configuration) times {
	s := p.of(&c)
	if s.time == nil || !c.valid() {
		return times{missing: Missing{Lacks: LacksModel}}
	}
	c = c.Banded()
	return s.time.times(&c)
}

// epochs predicts the first epochs.
func (t *times) epochs(n int) EpochTime {
	e := EpochTime{Support: t.support, Counts: t.counts}
	if e.Support == NeverRun {
		return e
	}
	n = max(n, 1)
	total := t.total(n)
	e.Location, e.Degrees = total.location-math.Log(float64(n)), total.degrees
	e.Variance = total.shared + total.run
	return e
}

// Time predicts the time of a number of epochs, including the start-up if it was ever measured. It
// is unknown if the model never ran on the node type.
func (p *Predictor) Time(c Configuration, epochs int) Time {
	e := p.Epochs(c, epochs)
	return Time{e.Seconds(epochs).Plus(p.Startup(c)), e.Support, e.Counts}
}

// Missing returns why no SLO can be promised for a configuration.
func (p *Predictor) Missing(c Configuration) Missing { return p.times(c).missing }
