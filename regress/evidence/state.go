package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// ServedHierarchy is a hierarchy in use, with the drift since it was learned. It is plain data that
// follows from the runs: Update returns the next state with a fit, Correct without one.
type ServedHierarchy struct {
	// Hierarchy is served, corrected by Drift if Corrected.
	*Hierarchy
	Corrected bool `json:"corrected,omitempty"`
	// Base is the hierarchy that runs are compared with to detect drift; nil if it is Hierarchy.
	Base *Hierarchy `json:"base,omitempty"`
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

const (
	// minRunsSinceJump is the number of runs since a jump that a fit needs to replace the factor.
	minRunsSinceJump = 12
	// maxComparedRuns is the number of runs without drift after which a base is replaced. A base
	// that has learned from fewer runs is replaced after as many, but at least minRunsSinceJump.
	maxComparedRuns = 60
)

// Update returns the state after the given runs: all known runs, in any order. A nil state has no
// runs.
//
// Without drift it serves a fit of all runs. While factors, suspects or a slow field are active, it
// serves the base with corrections, until there are enough runs since the jump for a fit; the fit
// adjusts earlier runs. Runs of new configurations, and old runs that are found later, for example
// by an import, are learned immediately, also by the base.
func (s *ServedHierarchy) Update(ctx context.Context, runs []Run, o Options) (*ServedHierarchy, error) {
	runs = withoutDuplicates(runs)
	if !slices.ContainsFunc(runs, isTimed) {
		h, err := Fit(ctx, runs, o)
		return &ServedHierarchy{Hierarchy: h}, err
	}
	if s == nil || s.Hierarchy == nil {
		return (&ServedHierarchy{}).rebase(ctx, runs, o)
	}
	next, err := s.Follow(runs)
	if err != nil {
		return nil, err
	}
	if since, usable, found := next.findNodeDifferences(runs); found {
		return next.regroup(ctx, usable, since, o)
	}
	by, err := next.corrections()
	if err != nil {
		return nil, err
	}
	lessons := next.collectLateRuns(runs)
	switch {
	case next.needsRebase(by):
		return next.rebase(ctx, runs, o)
	case lessons:
		if err := next.refitBase(ctx, runs, o); err != nil {
			return nil, err
		}
	}
	if by.active() {
		return next.serveCorrected(), nil
	}
	next.Corrected = false
	next.Hierarchy, err = Fit(ctx, next.Drift.Adjust(next.compiled, runs), o)
	return next, err
}

// Correct returns the state that serves the base, corrected by the given runs: all known runs, or
// only new ones. isNew is false if that is served already, or if nothing drifts. It is fast.
func (s *ServedHierarchy) Correct(runs []Run) (next *ServedHierarchy, isNew bool, err error) {
	if next, err = s.Follow(runs); err != nil {
		return nil, false, err
	}
	by, err := next.corrections()
	switch {
	case err != nil:
		return nil, false, err
	case by.active():
		isNew = !s.Corrected || len(next.Compared) > len(s.Compared)
		return next.serveCorrected(), isNew, nil
	case s.Corrected:
		next = next.serveCorrected()
		next.Corrected = false
		return next, true, nil
	}
	return next, false, nil
}

// serveCorrected serves the base with corrections.
func (s *ServedHierarchy) serveCorrected() *ServedHierarchy {
	s.Hierarchy, s.Base, s.Corrected = s.base(), nil, true
	return s
}

// base returns the hierarchy that runs are compared with.
func (s *ServedHierarchy) base() *Hierarchy { return cmp.Or(s.Base, s.Hierarchy) }

// Follow returns the state after comparing the given runs that ended since the base was learned. It
// ignores runs that were compared before, and runs that the base cannot predict. The served
// hierarchy does not change.
func (s *ServedHierarchy) Follow(runs []Run) (*ServedHierarchy, error) {
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
			var err error
			if next.Drift, err = next.Drift.Add(residual); err != nil {
				return nil, fmt.Errorf("run %s: %w", r.comparedName(), err)
			}
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
	_, timed := r.timing()
	return timed
}

// withoutDuplicates returns the last of the runs with each ID.
func withoutDuplicates(runs []Run) []Run {
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

// lateConfigurations returns the configurations that the base learned from late runs, and the end
// of the first run of each.
func (s *ServedHierarchy) lateConfigurations() map[Configuration]time.Time {
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
func (s *ServedHierarchy) canCompare(r *Run, taught map[Configuration]time.Time) bool {
	c := s.compiled.banded(r)
	if _, is := taught[c]; is {
		return false
	}
	e := s.compiled.Epochs(nil, c)
	return e.Support.Promisable()
}

// corrections returns the corrections of the base, nil before the first residual.
func (s *ServedHierarchy) corrections() (*Corrections, error) {
	by, err := s.Drift.Corrections()
	if by == nil || len(s.Taught) == 0 {
		return by, err
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
	return by, nil
}

// needsRebase reports whether to replace the base by a fit of all runs: there are enough runs since
// every jump, or enough runs without a jump.
func (s *ServedHierarchy) needsRebase(by *Corrections) bool {
	since := len(s.Compared) + len(s.Taught)
	factors := by.Factors()
	fresh := slices.ContainsFunc(factors, func(f Factor) bool { return f.Runs < minRunsSinceJump })
	quiet := min(maxComparedRuns, max(minRunsSinceJump, s.Learned))
	return since >= MaxResiduals || !fresh && (len(factors) > 0 || since >= quiet)
}

// rebase returns a state with a fit of all runs as its base; runs from before jumps are adjusted.
func (s *ServedHierarchy) rebase(ctx context.Context, runs []Run, o Options) (*ServedHierarchy, error) {
	adjusted := runs
	if s.compiled != nil {
		adjusted = s.Drift.Adjust(s.compiled, runs)
	}
	h, err := Fit(ctx, adjusted, o)
	if err != nil {
		return nil, err
	}
	next := &ServedHierarchy{Hierarchy: h, Drift: s.Drift.Refitted()}
	for i := range runs {
		if end := runs[i].EndedAt; end.After(next.Through) {
			next.Through = end
		}
	}
	next.Learned = next.countLearned(runs)
	return next, nil
}

// countLearned counts the runs that had ended when the base was learned.
func (s *ServedHierarchy) countLearned(runs []Run) (n int) {
	for i := range runs {
		if end := runs[i].EndedAt; !end.IsZero() && !end.After(s.Through) {
			n++
		}
	}
	return n
}

// collectLateRuns adds runs that the base should learn from, and reports whether there are any:
// runs from before it was learned that arrived later, or later runs of unknown configurations.
func (s *ServedHierarchy) collectLateRuns(runs []Run) (any bool) {
	names, taught := map[string]bool{}, s.lateConfigurations()
	for i := range s.Taught {
		names[s.Taught[i].Run] = true
	}
	learned := s.countLearned(runs)
	any = learned > s.Learned
	s.Learned, s.Taught = learned, slices.Clone(s.Taught)
	for i := range runs {
		r := &runs[i]
		late := r.EndedAt.After(s.Through) && isTimed(*r)
		if !late || r.comparedName() == "" || names[r.comparedName()] || s.canCompare(r, taught) {
			continue
		}
		any = true
		s.Taught = append(s.Taught, LateRun{r.comparedName(), s.compiled.banded(r), r.EndedAt})
	}
	return any
}

// refitBase fits the base again with its late runs.
func (s *ServedHierarchy) refitBase(ctx context.Context, runs []Run, o Options) error {
	taught := map[string]bool{}
	for i := range s.Taught {
		taught[s.Taught[i].Run] = true
	}
	past := DriftState{Past: s.Drift.Past}
	lessons := slices.DeleteFunc(slices.Clone(past.Adjust(s.compiled, runs)), func(r Run) bool {
		return !taught[r.comparedName()] && (r.EndedAt.IsZero() || r.EndedAt.After(s.Through))
	})
	var err error
	if s.Base, err = Fit(ctx, lessons, o); err == nil {
		s.compiled, err = Compile(s.Base)
	}
	return err
}

// Adjusted returns the runs as the served fit used them: times from before jumps are removed or
// multiplied.
func (s *ServedHierarchy) Adjusted(runs []Run) []Run {
	p := s.compiled
	if p == nil {
		var err error
		if p, err = Compile(s.base()); err != nil {
			return runs
		}
	}
	return s.Drift.Adjust(p, runs)
}

// Factors returns the factors that correct the served hierarchy.
func (s *ServedHierarchy) Factors() []Factor {
	if s == nil || !s.Corrected {
		return nil
	}
	return s.Drift.activeFactors()
}

// Compile returns the predictor of the state and its corrections, which are nil without drift. An
// error wraps ErrInvalid.
func (s *ServedHierarchy) Compile() (*Predictor, *Corrections, error) {
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
	case s.Drift.inflation() > 1: // recent runs were less predictable than earlier ones
		return p, &Corrections{jumps: &jumps{}, inflation: s.Drift.inflation()}, nil
	}
	return p, nil, nil
}
