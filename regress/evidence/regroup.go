package evidence

import (
	"context"
	"maps"
	"slices"
	"time"
)

// findNodeDifferences looks for nodes that explain the jumps better than time does: since the first
// jump their runs differ from other nodes of their type, and the base does not separate
// them. usable are the runs to learn from: only the later runs of these nodes, because a node
// may have changed alone.
func (s *ServedHierarchy) findNodeDifferences(runs []Run) (since time.Time, usable []Run, found bool) {
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
func (s *ServedHierarchy) regroup(
	ctx context.Context, usable []Run, since time.Time, o Options,
) (*ServedHierarchy, error) {
	next := *s
	earlier := slices.DeleteFunc(slices.Clone(s.Drift.Past), func(f Factor) bool {
		return !f.Since.Before(since)
	})
	next.Drift = DriftState{Past: earlier}
	return next.rebase(ctx, usable, o)
}
