package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// State is what is served and what happened since it was learned. It is plain data, and a fold over
// the runs: Update returns the next one, and Correct the next one without a fit.
type State struct {
	// Hierarchy that is served, corrected by Drift if Corrected.
	*Hierarchy
	Corrected bool `json:"corrected,omitempty"`
	// Base is what runs are compared with to see whether times drift; nil if it is Hierarchy.
	Base *Hierarchy `json:"base,omitempty"`
	// Through is the end of the last run that the base has learned from, and Learned how many of
	// the known runs had ended by then.
	Through time.Time `json:"through,omitzero"`
	Learned int       `json:"learned"`
	// Taught are the runs that ended later and that the base has learned from all the same, because
	// it knew nothing of their configurations. Compared are all others that ended later.
	Taught   []Lesson `json:"taught,omitempty"`
	Compared []string `json:"compared,omitempty"`
	// Drift is what the compared runs showed.
	Drift Drift `json:"drift"`

	compiled *Predictor // of the base
}

// Lesson is a run of a configuration that a base did not know.
type Lesson struct {
	Run string `json:"run"`
	Configuration
	EndedAt time.Time `json:"ended_at"`
}

const (
	// enoughSince is how many runs since a jump a fit needs before it replaces the factor.
	enoughSince = 12
	// quietRuns are compared with a base; then they become part of the next one. A base that has
	// learned from fewer runs is replaced after as many, but enoughSince at least.
	quietRuns = 60
)

// Update returns the state after the given runs, which are all that are known, in any order.
//
// While nothing drifts, a fit of all runs is served. While factors, suspects or a slow field are
// active the base is served, corrected by them, until enough runs since the jump are known for a
// fit, for which earlier runs are adjusted. What runs for the first time is learned at once, by the
// base too, and so are runs that are found later, as by an import. A nil state is that before the
// first run.
func (s *State) Update(ctx context.Context, runs []Run, o Options) (*State, error) {
	runs = withoutCopies(runs)
	if !slices.ContainsFunc(runs, isTimed) {
		h, err := Fit(ctx, runs, o)
		return &State{Hierarchy: h}, err
	}
	if s == nil || s.Hierarchy == nil {
		return (&State{}).rebase(ctx, runs, o)
	}
	next, err := s.Follow(runs)
	if err != nil {
		return nil, err
	}
	if since, usable, found := next.differing(runs); found {
		return next.regroup(ctx, usable, since, o)
	}
	by, err := next.corrections()
	if err != nil {
		return nil, err
	}
	lessons := next.collect(runs)
	switch {
	case next.isRipe(by):
		return next.rebase(ctx, runs, o)
	case lessons:
		if err := next.teach(ctx, runs, o); err != nil {
			return nil, err
		}
	}
	if by.active() {
		return next.corrected(), nil
	}
	next.Corrected = false
	next.Hierarchy, err = Fit(ctx, next.Drift.Adjust(next.compiled, runs), o)
	return next, err
}

// Correct returns the state that serves the base, corrected by what the given runs show: all that
// are known, or only new ones. isNew is false if that is served already, and if nothing drifts. It
// takes little time.
func (s *State) Correct(runs []Run) (next *State, isNew bool, err error) {
	if next, err = s.Follow(runs); err != nil {
		return nil, false, err
	}
	by, err := next.corrections()
	switch {
	case err != nil:
		return nil, false, err
	case by.active():
		isNew = !s.Corrected || len(next.Compared) > len(s.Compared)
		return next.corrected(), isNew, nil
	case s.Corrected:
		next = next.corrected()
		next.Corrected = false
		return next, true, nil
	}
	return next, false, nil
}

// corrected serves the base, corrected.
func (s *State) corrected() *State {
	s.Hierarchy, s.Base, s.Corrected = s.base(), nil, true
	return s
}

// base is what runs are compared with.
func (s *State) base() *Hierarchy { return cmp.Or(s.Base, s.Hierarchy) }

// Follow returns the state after runs that ended since the base was learned were compared with it.
// Runs that were compared before change nothing, nor do those that the base cannot predict. What is
// served stays.
func (s *State) Follow(runs []Run) (*State, error) {
	next := *s
	next.Base = s.base()
	if next.compiled == nil {
		var err error
		if next.compiled, err = Compile(next.Base); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{"": true} // what has no name cannot be told from a copy
	for _, name := range s.Compared {
		known[name] = true
	}
	taught := next.taught()
	fresh := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		late := r.EndedAt.After(s.Through) && isTimed(r)
		return !late || known[r.name()] || !next.knows(&r, taught)
	})
	slices.SortStableFunc(fresh, byEnd)
	next.Compared = slices.Clone(s.Compared)
	for i := range fresh {
		r := &fresh[i]
		if name := r.name(); !known[name] {
			known[name] = true
			next.Compared = append(next.Compared, name)
		}
		if residual, ok := next.compiled.Residual(r); ok && i >= len(fresh)-MaxResiduals {
			var err error
			if next.Drift, err = next.Drift.Add(residual); err != nil {
				return nil, fmt.Errorf("run %s: %w", r.name(), err)
			}
		}
	}
	return &next, nil
}

// byEnd orders runs by their end, and stretches of one run by their begin.
func byEnd(a, b Run) int {
	return cmp.Or(a.EndedAt.Compare(b.EndedAt), a.StartedAt.Compare(b.StartedAt),
		cmp.Compare(a.ID, b.ID))
}

func isTimed(r Run) bool {
	_, timed := r.timing()
	return timed
}

// withoutCopies returns the last of the runs with each ID.
func withoutCopies(runs []Run) []Run {
	last := map[string]int{}
	for i := range runs {
		last[runs[i].ID] = i
	}
	var kept []Run
	for i := range runs {
		if runs[i].ID == "" || last[runs[i].ID] == i {
			kept = append(kept, runs[i])
		}
	}
	return kept
}

// taught returns the configurations that the base was taught, and when the first run of each ended.
func (s *State) taught() map[Configuration]time.Time {
	all := map[Configuration]time.Time{}
	for i := range s.Taught {
		l := &s.Taught[i]
		if first, ok := all[l.Configuration]; !ok || l.EndedAt.Before(first) {
			all[l.Configuration] = l.EndedAt
		}
	}
	return all
}

// knows reports whether a run can be compared with the base: it has evidence for the configuration,
// from before the runs that are compared.
func (s *State) knows(r *Run, taught map[Configuration]time.Time) bool {
	c := s.compiled.banded(r)
	if _, is := taught[c]; is {
		return false
	}
	e := s.compiled.Epochs(nil, c)
	return e.Support.Promisable()
}

// corrections returns the corrections of the base, nil before the first residual.
func (s *State) corrections() (*Corrections, error) {
	by, err := s.Drift.Corrections()
	if by == nil || len(s.Taught) == 0 {
		return by, err
	}
	by.exempt, by.exemptSubjects = s.taught(), map[subject]time.Time{}
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
	return by, nil
}

// isRipe reports whether it is time for a base that has learned from all runs: there are enough
// for a fit since every jump, or there were enough without one.
func (s *State) isRipe(by *Corrections) bool {
	since := len(s.Compared) + len(s.Taught)
	factors := by.Factors()
	fresh := slices.ContainsFunc(factors, func(f Factor) bool { return f.Runs < enoughSince })
	quiet := min(quietRuns, max(enoughSince, s.Learned))
	return since >= MaxResiduals || !fresh && (len(factors) > 0 || since >= quiet)
}

// rebase fits all runs, those before jumps adjusted, and compares later runs with that.
func (s *State) rebase(ctx context.Context, runs []Run, o Options) (*State, error) {
	adjusted := runs
	if s.compiled != nil {
		adjusted = s.Drift.Adjust(s.compiled, runs)
	}
	h, err := Fit(ctx, adjusted, o)
	if err != nil {
		return nil, err
	}
	next := &State{Hierarchy: h, Drift: s.Drift.Refitted()}
	for i := range runs {
		if end := runs[i].EndedAt; end.After(next.Through) {
			next.Through = end
		}
	}
	next.Learned = next.countLearned(runs)
	return next, nil
}

// countLearned counts the runs that had ended when the base was learned.
func (s *State) countLearned(runs []Run) (n int) {
	for i := range runs {
		if end := runs[i].EndedAt; !end.IsZero() && !end.After(s.Through) {
			n++
		}
	}
	return n
}

// collect notes the lessons for the base, and reports whether there are any: runs from before it
// was learned that it has not learned from, or later ones of what it did not know.
func (s *State) collect(runs []Run) (any bool) {
	names, taught := map[string]bool{}, s.taught()
	for i := range s.Taught {
		names[s.Taught[i].Run] = true
	}
	learned := s.countLearned(runs)
	any = learned > s.Learned
	s.Learned, s.Taught = learned, slices.Clone(s.Taught)
	for i := range runs {
		r := &runs[i]
		late := r.EndedAt.After(s.Through) && isTimed(*r)
		if !late || r.name() == "" || names[r.name()] || s.knows(r, taught) {
			continue
		}
		any = true
		s.Taught = append(s.Taught, Lesson{r.name(), s.compiled.banded(r), r.EndedAt})
	}
	return any
}

// teach fits the base again, with its lessons.
func (s *State) teach(ctx context.Context, runs []Run, o Options) error {
	taught := map[string]bool{}
	for i := range s.Taught {
		taught[s.Taught[i].Run] = true
	}
	past := Drift{Past: s.Drift.Past}
	lessons := slices.DeleteFunc(slices.Clone(past.Adjust(s.compiled, runs)), func(r Run) bool {
		return !taught[r.name()] && (r.EndedAt.IsZero() || r.EndedAt.After(s.Through))
	})
	var err error
	if s.Base, err = Fit(ctx, lessons, o); err == nil {
		s.compiled, err = Compile(s.Base)
	}
	return err
}

// Adjusted returns the runs as the fit that is served saw them: after jumps, earlier times are left
// out or multiplied.
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

// Factors returns the factors that correct what is served.
func (s *State) Factors() []Factor {
	if s == nil || !s.Corrected {
		return nil
	}
	return s.Drift.active()
}

// Compile makes the state ready to answer: the predictor, and its corrections, which are nil
// while nothing drifts. An error wraps ErrInvalid.
func (s *State) Compile() (*Predictor, *Corrections, error) {
	if s.Hierarchy == nil {
		return nil, nil, fmt.Errorf("%w: no hierarchy", ErrInvalid)
	}
	p, err := Compile(s.Hierarchy)
	switch {
	case err != nil:
		return nil, nil, err
	case s.Corrected:
		c, err := s.corrections()
		return p, c, err
	case s.Drift.inflation() > 1: // recent runs were less predictable than those before
		return p, &Corrections{jumps: &jumps{}, inflation: s.Drift.inflation()}, nil
	}
	return p, nil, nil
}
