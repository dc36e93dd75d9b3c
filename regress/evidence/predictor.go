package evidence

import "fmt"

// Predictor predicts from a hierarchy. It is immutable and safe for concurrent use.
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

// Compile returns the predictor of a hierarchy, which must not be changed afterwards. An error
// wraps ErrInvalid.
func Compile(h *Hierarchy) (*Predictor, error) {
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

// Time predicts the time of a number of epochs, including the start-up if it was ever measured. It
// is unknown if the model never ran on the node type.
func (p *Predictor) Time(c Configuration, epochs int) Time {
	return p.CorrectedTime(nil, c, epochs)
}

// CorrectedTime is Time with corrections for drift; by may be nil.
func (p *Predictor) CorrectedTime(by *Corrections, c Configuration, epochs int) Time {
	e := p.Epochs(by, c)
	t := Time{Support: e.Support, Counts: e.Counts, Correction: e.Correction}
	if !e.Known() {
		return t
	}
	t.Distribution = e.Seconds(epochs)
	if startup := p.Startup(c); startup.Known() {
		t.StartupSeconds = startup.Median()
		t.Distribution = t.Plus(startup)
	}
	return t
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

// LargestEpochs returns the largest number of epochs, up to most, that takes at most limit seconds
// with the given probability, after corrections; 0 if there is none.
func (p *Predictor) LargestEpochs(
	by *Corrections, c Configuration, limit, probability float64, most int,
) int {
	low, high := 0, most // low is within the limit
	for low < high {
		middle := low + (high-low+1)/2
		if t := p.CorrectedTime(by, c, middle); t.Known() && t.Probability(limit) >= probability {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// SmallestEpochs returns the smallest number of epochs, up to most, after which the target accuracy
// is reached with the given probability; 0 if there is none.
func (p *Predictor) SmallestEpochs(c Configuration, target, probability float64, most int) int {
	reaches := func(epochs int) bool {
		a := p.Accuracy(c, epochs)
		return a.Reaches(target) >= probability
	}
	if most < 1 || !reaches(most) {
		return 0
	}
	low, high := 0, most // high reaches the target
	for high-low > 1 {
		if middle := low + (high-low)/2; reaches(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
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
