package evidence

import (
	"context"
	"maps"
	"slices"
	"time"
)

// differing returns nodes that explain the jumps better than time does: since the first jump, their
// runs differ from those of other nodes of their type, and the base does not know that. With them
// it returns the runs to learn from: of these nodes only those since then, for a node may have
// changed alone.
func (s *State) differing(runs []Run) (since time.Time, usable []Run, found bool) {
	factors := slices.Concat(s.Drift.Past, s.Drift.active())
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
	// Without a group that a fit finds too, the same would be found again and again.
	found = slices.ContainsFunc(groupNodes(usable), func(g NodeGroup) bool {
		return groups[nodeKey{g.Node, g.NodeType}] != ""
	})
	return since, usable, found
}

// regroup replaces the base by one that tells nodes from others of their type. What was taken for
// drift since then is forgotten: it may have been the difference between the nodes.
func (s *State) regroup(
	ctx context.Context, usable []Run, since time.Time, o Options,
) (*State, error) {
	next := *s
	next.Drift = Drift{Past: slices.DeleteFunc(slices.Clone(s.Drift.Past), func(f Factor) bool {
		return !f.Since.Before(since)
	})}
	return next.rebase(ctx, usable, o)
}
