package trainer

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// widest is the most hours in which a run is looked for; one that says it took
// longer is looked at each time.
const widest = 10_000

// place is an hour of a node.
type place struct {
	node string
	hour int64
}

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// neighbours finds the runs that were on a node at some time, without looking at
// all that ever were.
type neighbours struct {
	over map[place][]*run  // runs that have ended, in every hour that they touch
	open map[string][]*run // runs that have not, by node
}

func newNeighbours() *neighbours {
	return &neighbours{over: map[place][]*run{}, open: map[string][]*run{}}
}

// begin takes a run that has begun, or goes on after it was lost.
func (n *neighbours) begin(r *run) {
	n.leave(r)
	r.listed = r.span.Nodes
	for _, node := range r.listed {
		n.open[node] = append(n.open[node], r)
	}
}

// end takes a run that has ended.
func (n *neighbours) end(r *run) {
	n.leave(r)
	for _, node := range r.span.Nodes {
		first, last := hourOf(r.span.From), hourOf(r.span.Until)
		if last-first > widest {
			n.open[node] = append(n.open[node], r)
			continue
		}
		for h := first; h <= last; h++ {
			p := place{node, h}
			n.over[p] = append(n.over[p], r)
		}
	}
}

// leave takes a run from those that are open.
func (n *neighbours) leave(r *run) {
	for _, node := range r.listed {
		n.open[node] = slices.DeleteFunc(n.open[node], func(o *run) bool { return o == r })
	}
	r.listed = nil
}

// of returns the spans of the runs that touch the time of a run on its nodes, in
// the order in which the log tells of them: sums of numbers depend on it.
func (n *neighbours) of(r *run) []schemas.Span {
	var found []*run
	take := func(all []*run) {
		for _, o := range all {
			if o != r && (r.span.Until.IsZero() || o.span.From.Before(r.span.Until)) && (o.span.Until.IsZero() || o.span.Until.After(r.span.From)) {
				found = append(found, o)
			}
		}
	}
	for _, node := range r.span.Nodes {
		take(n.open[node])
		until := r.span.Until
		if until.IsZero() {
			until = n.latest(r)
		}
		first, last := hourOf(r.span.From), hourOf(until)
		if last-first > widest {
			for _, all := range n.over {
				take(all)
			}
			continue
		}
		for h := first; h <= last; h++ {
			take(n.over[place{node, h}])
		}
	}
	slices.SortFunc(found, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	found = slices.Compact(found)
	spans := make([]schemas.Span, len(found))
	for i, o := range found {
		spans[i] = o.span
	}
	return spans
}

// latest is until when a run that has not ended is known: its last epoch.
func (n *neighbours) latest(r *run) time.Time {
	if len(r.epochs) == 0 {
		return r.span.From
	}
	return r.epochs[len(r.epochs)-1].At
}
