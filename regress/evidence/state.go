package evidence

import (
	"cmp"
	"slices"
	"time"
)

// State is a regressor in use, with the drift since its base was learned. It is plain data that
// follows from the runs: Update returns the next state.
type State struct {
	// Regressor is served: a fit of all runs, adjusted for drift.
	*Regressor
	// Base is the regressor that runs are compared with to detect drift; nil if it is Regressor.
	Base *Regressor `json:"base,omitempty"`
	// Through is the end of the last run when the base was replaced, and Learned the number of runs
	// that it has learned from.
	Through time.Time `json:"through,omitzero"`
	Learned int       `json:"learned"`
	// Compared and New are the names of later runs. Compared runs have residuals; New runs have none,
	// because the base had too little evidence to predict them.
	Compared []string `json:"compared,omitempty"`
	New      []string `json:"new,omitempty"`
	// Drift contains the residuals of the compared runs.
	Drift DriftState `json:"drift"`

	compiled *Predictor // of the base
}

// base returns the regressor that runs are compared with.
func (s *State) base() *Regressor { return cmp.Or(s.Base, s.Regressor) }

// setBase replaces the regressor that runs are compared with.
func (s *State) setBase(r *Regressor) (err error) {
	s.Base = r
	s.compiled, err = Compile(r)
	return err
}

// follow returns the state after comparing the given runs that ended since the base was replaced. It
// ignores runs that are known. The served regressor does not change.
func (s *State) follow(runs []Run) (*State, error) {
	next := *s
	if next.compiled == nil {
		if err := next.setBase(s.base()); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{"": true} // a run without a name may be a duplicate
	for _, name := range slices.Concat(s.Compared, s.New) {
		known[name] = true
	}
	fresh := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return !r.EndedAt.After(s.Through) || known[r.comparedName()] || !isTimed(r)
	})
	slices.SortStableFunc(fresh, byEnd)
	next.Compared, next.New = slices.Clone(s.Compared), slices.Clone(s.New)
	for i := range fresh {
		names := &next.New
		if residual, ok := next.compiled.Residual(&fresh[i]); ok {
			names = &next.Compared
			next.Drift = next.Drift.Add(residual)
		}
		if name := fresh[i].comparedName(); !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
	}
	return &next, nil
}

// byEnd orders runs by their end, and parts of one run by their start.
func byEnd(a, b Run) int {
	return cmp.Or(a.EndedAt.Compare(b.EndedAt), a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
}

// Adjusted returns the runs as the served fit used them: times from before jumps are removed or
// multiplied by factors.
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

// Factors returns the factors of the drift that the served regressor is adjusted for.
func (s *State) Factors() []Factor {
	if s == nil {
		return nil
	}
	return s.Drift.Factors()
}
