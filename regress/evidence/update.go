package evidence

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// minRunsSinceJump is the number of runs since a jump that a base needs to learn the factor.
	minRunsSinceJump = 12
	// maxComparedRuns is the number of runs without drift after which a base is replaced. A base
	// that has learned from fewer runs is replaced after as many, but at least minRunsSinceJump.
	maxComparedRuns = 60
)

// Update returns the state after the given runs: all known runs, in any order. A nil state has no
// runs.
//
// It serves a fit of all runs, in which those from before a jump are adjusted. The factors of jumps
// are estimated by comparing later runs with the base, until there are enough of them for a new base.
// A factor is served at least once, so that it becomes known, however many runs show it at first. Runs
// that are new to the base, and old runs that are found later, for example by an import, are learned
// by the base as well unless there is drift.
func (s *State) Update(ctx context.Context, runs []Run, o Options) (*State, error) {
	if !slices.ContainsFunc(runs, isTimed) {
		h, err := Fit(ctx, runs, o)
		return &State{Regressor: h}, err
	}
	if s == nil || s.Regressor == nil {
		return (&State{}).rebase(ctx, runs, o)
	}
	next, err := s.follow(runs)
	if err != nil {
		return nil, err
	}
	if since, usable, found := next.findNodeDifferences(runs); found {
		return next.regroup(ctx, usable, since, o)
	}
	factors := next.Factors()
	if next.needsRebase(factors) && (len(factors) == 0 || len(s.Factors()) > 0) {
		return next.rebase(ctx, runs, o)
	}
	if len(factors) == 0 {
		if err := next.learnNew(ctx, runs, o); err != nil {
			return nil, err
		}
	}
	next.Regressor, err = Fit(ctx, next.Adjusted(runs), o)
	return next, err
}

// needsRebase reports whether to replace the base by a fit of all runs: there are enough runs since
// every jump, or enough runs without a jump.
func (s *State) needsRebase(factors []Factor) bool {
	since := len(s.Compared) + len(s.New)
	fresh := slices.ContainsFunc(factors, func(f Factor) bool { return f.Runs < minRunsSinceJump })
	quiet := min(maxComparedRuns, max(minRunsSinceJump, s.Learned))
	return since >= MaxResiduals || !fresh && (len(factors) > 0 || since >= quiet)
}

// rebase returns a state with a fit of all runs as its base; runs from before jumps are adjusted.
func (s *State) rebase(ctx context.Context, runs []Run, o Options) (*State, error) {
	adjusted := runs
	if s.compiled != nil {
		adjusted = s.Adjusted(runs)
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
	next.Learned = len(next.lessons(runs))
	return next, nil
}

// lessons returns the ended runs that the base learns from: all but those that are compared with it.
func (s *State) lessons(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		isLate := r.EndedAt.After(s.Through) && !slices.Contains(s.New, r.comparedName())
		return r.EndedAt.IsZero() || isLate
	})
}

// learnNew fits the base again if there are other runs to learn from than before.
func (s *State) learnNew(ctx context.Context, runs []Run, o Options) error {
	lessons := s.lessons(runs)
	if len(lessons) == s.Learned {
		return nil
	}
	h, err := Fit(ctx, s.Adjusted(lessons), o)
	if err != nil {
		return err
	}
	s.Learned = len(lessons)
	return s.setBase(h)
}

// findNodeDifferences looks for nodes that explain the jumps better than time does: since the first
// jump their runs differ from other nodes of their type, and the base does not separate
// them. usable are the runs to learn from: only the later runs of these nodes, because a node
// may have changed alone.
func (s *State) findNodeDifferences(runs []Run) (since time.Time, usable []Run, found bool) {
	factors := slices.Concat(s.Drift.Past, s.Factors())
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
func (s *State) regroup(ctx context.Context, usable []Run, since time.Time, o Options) (*State, error) {
	next := *s
	earlier := slices.DeleteFunc(slices.Clone(s.Drift.Past), func(f Factor) bool {
		return !f.Since.Before(since)
	})
	next.Drift = DriftState{Past: earlier}
	return next.rebase(ctx, usable, o)
}
