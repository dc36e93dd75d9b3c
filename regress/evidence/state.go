package evidence

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// State is a regressor in use, with the drift since it was learned. It is plain data that
// follows from the runs: Update returns the next state.
type State struct {
	// Regressor is served, corrected by Drift if Corrected.
	*Regressor
	Corrected bool `json:"corrected,omitempty"`
	// Base is the regressor that runs are compared with to detect drift; nil if it is Regressor.
	Base *Regressor `json:"base,omitempty"`
	// Through is the end of the last run that the base has learned from; Learned is the number of
	// runs that had ended by then.
	Through time.Time `json:"through,omitzero"`
	Learned int       `json:"learned"`
	// Taught are later runs that the base has learned from nevertheless, because they were the
	// first of their configurations. Compared are all other later runs.
	Taught   []LateRun `json:"taught,omitempty"`
	Compared []string  `json:"compared,omitempty"`
	// Drift contains the residuals of the compared runs.
	Drift DriftState `json:"drift"`

	compiled *Predictor // of the base
}

// LateRun is a run of a configuration that a base did not know.
type LateRun struct {
	Run string `json:"run"`
	Configuration
	EndedAt time.Time `json:"ended_at"`
}

// serveCorrected serves the base with corrections.
func (s *State) serveCorrected() *State {
	s.Regressor, s.Base, s.Corrected = s.base(), nil, true
	return s
}

// base returns the regressor that runs are compared with.
func (s *State) base() *Regressor { return cmp.Or(s.Base, s.Regressor) }

// Follow returns the state after comparing the given runs that ended since the base was learned. It
// ignores runs that were compared before, and runs that the base cannot predict. The served
// regressor does not change.
func (s *State) Follow(runs []Run) (*State, error) {
	next := *s
	next.Base = s.base()
	if next.compiled == nil {
		var err error
		if next.compiled, err = Compile(next.Base); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{"": true} // a run without a name may be a duplicate
	for _, name := range s.Compared {
		known[name] = true
	}
	taught := next.lateConfigurations()
	fresh := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		late := r.EndedAt.After(s.Through) && isTimed(r)
		return !late || known[r.comparedName()] || !next.canCompare(&r, taught)
	})
	slices.SortStableFunc(fresh, byEnd)
	next.Compared = slices.Clone(s.Compared)
	for i := range fresh {
		r := &fresh[i]
		if name := r.comparedName(); !known[name] {
			known[name] = true
			next.Compared = append(next.Compared, name)
		}
		if residual, ok := next.compiled.Residual(r); ok && i >= len(fresh)-MaxResiduals {
			next.Drift = next.Drift.Add(residual)
		}
	}
	return &next, nil
}

// byEnd orders runs by their end, and parts of one run by their start.
func byEnd(a, b Run) int {
	return cmp.Or(a.EndedAt.Compare(b.EndedAt), a.StartedAt.Compare(b.StartedAt),
		cmp.Compare(a.ID, b.ID))
}

func isTimed(r Run) bool {
	_, timed := r.usualEpoch()
	return timed
}

// lateConfigurations returns the configurations that the base learned from late runs, and the end
// of the first run of each.
func (s *State) lateConfigurations() map[Configuration]time.Time {
	all := map[Configuration]time.Time{}
	for i := range s.Taught {
		l := &s.Taught[i]
		if first, ok := all[l.Configuration]; !ok || l.EndedAt.Before(first) {
			all[l.Configuration] = l.EndedAt
		}
	}
	return all
}

// canCompare reports whether a run can be compared with the base, which must have evidence for its
// configuration from before the compared runs.
func (s *State) canCompare(r *Run, taught map[Configuration]time.Time) bool {
	c := s.compiled.banded(r)
	if _, is := taught[c]; is {
		return false
	}
	e := s.compiled.Epochs(nil, c, 1)
	return e.Support.Promisable()
}

// corrections returns the corrections of the base, nil before the first residual.
func (s *State) corrections() *Corrections {
	by := s.Drift.Corrections()
	if by == nil || len(s.Taught) == 0 {
		return by
	}
	by.exempt, by.exemptSubjects = s.lateConfigurations(), map[subject]time.Time{}
	base := s.base()
	for i := range base.Subjects {
		of := &base.Subjects[i]
		if of.Time == nil {
			continue
		}
		var first time.Time
		isNew := !slices.ContainsFunc(of.Time.Configurations, func(m ConfigurationTimes) bool {
			at, is := by.exempt[m.Configuration]
			if first.IsZero() || at.Before(first) {
				first = at
			}
			return !is
		})
		if isNew {
			by.exemptSubjects[subject{of.Model, of.Dataset}] = first
		}
	}
	return by
}

// Adjusted returns the runs as the served fit used them: times from before jumps are removed or
// multiplied.
func (s *State) Adjusted(runs []Run) []Run {
	p := s.compiled
	if p == nil {
		var err error
		if p, err = Compile(s.base()); err != nil {
			return runs
		}
	}
	return s.Drift.Adjust(p, runs)
}

// Factors returns the factors that correct the served regressor.
func (s *State) Factors() []Factor {
	if s == nil || !s.Corrected {
		return nil
	}
	return s.Drift.activeFactors()
}

// Compile returns the predictor of the state and its corrections, which are nil without drift.
func (s *State) Compile() (*Predictor, *Corrections, error) {
	if s.Regressor == nil {
		return nil, nil, errors.New("the state has no regressor")
	}
	p, err := Compile(s.Regressor)
	if err != nil || !s.Corrected {
		return p, nil, err
	}
	return p, s.corrections(), nil
}
