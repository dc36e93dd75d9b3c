package evidence

import (
	"context"
	"maps"
	"slices"
	"time"
)

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
// Without drift it serves a fit of all runs. While factors or suspects are active, it
// serves the base with corrections, until there are enough runs since the jump for a fit; the fit
// adjusts earlier runs. A factor is served at least once, so that it becomes known, however many runs
// show it at first. Runs of new configurations, and old runs that are found later, for example
// by an import, are learned immediately, also by the base.
func (s *State) Update(ctx context.Context, runs []Run, o Options) (*State, error) {
	if !slices.ContainsFunc(runs, isTimed) {
		h, err := Fit(ctx, runs, o)
		return &State{Regressor: h}, err
	}
	if s == nil || s.Regressor == nil {
		return (&State{}).rebase(ctx, runs, o)
	}
	next, err := s.Follow(runs)
	if err != nil {
		return nil, err
	}
	if since, usable, found := next.findNodeDifferences(runs); found {
		return next.regroup(ctx, usable, since, o)
	}
	by := next.corrections()
	lessons := next.collectLateRuns(runs)
	switch {
	case next.needsRebase(by) && (s.Corrected || len(by.Factors()) == 0):
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
	next.Regressor, err = Fit(ctx, next.Drift.Adjust(next.compiled, runs), o)
	return next, err
}

// needsRebase reports whether to replace the base by a fit of all runs: there are enough runs since
// every jump, or enough runs without a jump.
func (s *State) needsRebase(by *Corrections) bool {
	since := len(s.Compared) + len(s.Taught)
	factors := by.Factors()
	fresh := slices.ContainsFunc(factors, func(f Factor) bool { return f.Runs < minRunsSinceJump })
	quiet := min(maxComparedRuns, max(minRunsSinceJump, s.Learned))
	return since >= MaxResiduals || !fresh && (len(factors) > 0 || since >= quiet)
}

// rebase returns a state with a fit of all runs as its base; runs from before jumps are adjusted.
func (s *State) rebase(ctx context.Context, runs []Run, o Options) (*State, error) {
	adjusted := runs
	if s.compiled != nil {
		adjusted = s.Drift.Adjust(s.compiled, runs)
	}
	h, err := Fit(ctx, adjusted, o)
	if err != nil {
		return nil, err
	}
	next := &State{Regressor: h, Drift: s.Drift.Refitted()}
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

// collectLateRuns adds runs that the base should learn from, and reports whether there are any:
// runs from before it was learned that arrived later, or later runs of unknown configurations.
func (s *State) collectLateRuns(runs []Run) (any bool) {
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
func (s *State) refitBase(ctx context.Context, runs []Run, o Options) error {
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

// findNodeDifferences looks for nodes that explain the jumps better than time does: since the first
// jump their runs differ from other nodes of their type, and the base does not separate
// them. usable are the runs to learn from: only the later runs of these nodes, because a node
// may have changed alone.
func (s *State) findNodeDifferences(runs []Run) (since time.Time, usable []Run, found bool) {
	factors := slices.Concat(s.Drift.Past, s.Drift.activeFactors())
	if len(factors) == 0 {
		return since, nil, false
	}
	since = slices.MinFunc(factors, func(a, b Factor) int { return a.Since.Compare(b.Since) }).Since
	recent := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return r.EndedAt.Before(since)
	})
	groups, known := groupMap(groupNodes(recent)), groupMap(s.base().NodeGroups)
	maps.DeleteFunc(groups, func(k nodeKey, _ string) bool { return known[k] != "" })
	if len(groups) == 0 {
		return since, nil, false
	}
	usable = slices.Clone(runs)
	for i := range usable {
		r := &usable[i]
		if groups[nodeKey{r.Node, r.NodeType}] != "" && r.EndedAt.Before(since) {
			r.multiply(0)
		}
	}
	// Without this check each update would find a group again that a fit does not find.
	found = slices.ContainsFunc(groupNodes(usable), func(g NodeGroup) bool {
		return groups[nodeKey{g.Node, g.NodeType}] != ""
	})
	return since, usable, found
}

// regroup replaces the base by one that separates these nodes. It drops the drift found since then,
// which may have been the difference between the nodes.
func (s *State) regroup(
	ctx context.Context, usable []Run, since time.Time, o Options,
) (*State, error) {
	next := *s
	earlier := slices.DeleteFunc(slices.Clone(s.Drift.Past), func(f Factor) bool {
		return !f.Since.Before(since)
	})
	next.Drift = DriftState{Past: earlier}
	return next.rebase(ctx, usable, o)
}
