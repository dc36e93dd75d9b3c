package evidence

import (
	"fmt"
	"math"
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

// Compile returns the predictor of a regressor, which must not be changed afterwards. An error
// wraps ErrInvalid.
func Compile(h *Regressor) (*Predictor, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	p := &Predictor{subjects: map[subject]*compiled{}, groups: groupMap(h.NodeGroups)}
	for i := range h.Subjects {
		s := &h.Subjects[i]
		c := &compiled{Subject: s}
		if s.Time != nil {
			var ok bool
			if c.time, ok = newTimePredictor(s.Time); !ok {
				return nil, fmt.Errorf(
					"%w: model %q, dataset %q: covariance is not positive definite",
					ErrInvalid, s.Model, s.Dataset)
			}
		}
		if s.Accuracy != nil {
			c.accuracy = newAccuracyPredictor(s.Accuracy)
		}
		key := subject{s.Model, s.Dataset}
		if p.subjects[key] != nil {
			return nil, fmt.Errorf("%w: model %q, dataset %q occurs twice",
				ErrInvalid, s.Model, s.Dataset)
		}
		p.subjects[key] = c
	}
	return p, nil
}

// Startup predicts the seconds from the start of a run to its first epoch. It is unknown if no
// start-up of the model was ever measured.
func (p *Predictor) Startup(c Configuration) Distribution {
	s := p.subjects[c.subject()]
	if s == nil {
		return Distribution{}
	}
	return s.startup(c.NodeType)
}

// NodeTypes returns the node types with timed runs of a model, unordered.
func (p *Predictor) NodeTypes(c Configuration) []string {
	s := p.subjects[c.subject()]
	if s == nil || s.time == nil {
		return nil
	}
	types := make([]string, 0, len(s.time.nodes))
	for name := range s.time.nodes {
		types = append(types, name)
	}
	return types
}

// startup returns the distribution of the start-up seconds of a subject on a node type; its scale
// is 0 if no start-up was measured.
func (s *Subject) startup(nodeType string) Distribution {
	mean, runs := 0.0, 0.0
	for i := range s.Startup {
		u := &s.Startup[i]
		if u.NodeType == nodeType {
			return Distribution{u.Location, math.Sqrt(u.Variance + u.LocationVariance), u.Degrees}
		}
		runs += float64(u.Runs)
		mean += float64(u.Runs) * (u.Location - mean) / runs
	}
	if runs == 0 {
		return Distribution{}
	}
	variance := s.Startup[0].Variance + otherNodeDeviation*otherNodeDeviation
	return Distribution{mean, math.Sqrt(variance), modelWeight}
}

// StartupRuns returns the number of runs of a model with a measured start-up: on the node type, and
// on all.
func (p *Predictor) StartupRuns(c Configuration) (onNodeType, all int) {
	s := p.subjects[c.subject()]
	if s == nil {
		return 0, 0
	}
	for i := range s.Startup {
		u := &s.Startup[i]
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
