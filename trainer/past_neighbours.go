package trainer

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// longRun is the duration, in hours, from which a run is listed once for its node instead of in
// every hour that it overlaps. Few runs take two days.
const longRun = 48

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// neighbours is an index of runs by node and time. It holds the open runs and those that ended
// last; Past decides when a run is removed.
type neighbours struct {
	nodes map[string]*nodeIndex
	found []*run         // buffer
	spans []schemas.Span // buffer
}

// nodeIndex holds the runs of one node.
type nodeIndex struct {
	open  []*run           // not ended
	long  []*run           // ended, of longRun hours or more
	hours map[int64][]*run // ended, in every hour that they overlap
}

func newNeighbours() *neighbours { return &neighbours{nodes: map[string]*nodeIndex{}} }

func (n *neighbours) of(node string) *nodeIndex {
	of := n.nodes[node]
	if of == nil {
		of = &nodeIndex{hours: map[int64][]*run{}}
		n.nodes[node] = of
	}
	return of
}

// begin adds an open run.
func (n *neighbours) begin(r *run) {
	n.remove(r)
	r.indexedNodes, r.indexed = r.span.Nodes, indexedOpen
	for _, node := range r.indexedNodes {
		of := n.of(node)
		of.open = append(of.open, r)
	}
}

// end moves an ended run to its hours.
func (n *neighbours) end(r *run) {
	n.remove(r)
	r.indexedNodes, r.indexed = r.span.Nodes, indexedEnded
	first, last := hourOf(r.span.From), hourOf(r.span.Until)
	for _, node := range r.indexedNodes {
		of := n.of(node)
		if last-first >= longRun {
			of.long = append(of.long, r)
			continue
		}
		for h := first; h <= last; h++ {
			of.hours[h] = append(of.hours[h], r)
		}
	}
}

// remove removes a run from the index. Its span must not have changed since it was added, except
// for the end of an open run.
func (n *neighbours) remove(r *run) {
	for _, node := range r.indexedNodes {
		of := n.nodes[node]
		if of == nil {
			continue
		}
		of.remove(r)
		if len(of.open)+len(of.long)+len(of.hours) == 0 {
			delete(n.nodes, node)
		}
	}
	r.indexedNodes, r.indexed = nil, notIndexed
}

func (of *nodeIndex) remove(r *run) {
	if r.indexed == indexedOpen {
		of.open = without(of.open, r)
		return
	}
	first, last := hourOf(r.span.From), hourOf(r.span.Until)
	if last-first >= longRun {
		of.long = without(of.long, r)
		return
	}
	for h := first; h <= last; h++ {
		if of.hours[h] = without(of.hours[h], r); len(of.hours[h]) == 0 {
			delete(of.hours, h)
		}
	}
}

func without(all []*run, r *run) []*run {
	return slices.DeleteFunc(all, func(o *run) bool { return o == r })
}

// between returns the spans of the other runs on the nodes of a run that overlap a part of its
// time. They are in the order of the log, because sums of floating-point numbers depend on the
// order. The slice is valid until the next call.
func (n *neighbours) between(r *run, from, until time.Time) []schemas.Span {
	n.spans = n.spans[:0]
	for _, o := range n.touching(r, from, until) {
		n.spans = append(n.spans, o.span)
	}
	return n.spans
}

// others returns the other runs on the nodes of an ended run that overlap its time.
func (n *neighbours) others(r *run) []*run {
	return slices.Clone(n.touching(r, r.span.From, r.span.Until))
}

// touching returns the other runs on the nodes of a run that overlap a part of its time. The slice
// is valid until the next call.
func (n *neighbours) touching(r *run, from, until time.Time) []*run {
	n.found = n.found[:0]
	if from.Before(r.span.From) {
		from = r.span.From
	}
	if !r.span.Until.IsZero() && r.span.Until.Before(until) {
		until = r.span.Until
	}
	for _, node := range r.span.Nodes {
		if of := n.nodes[node]; of != nil {
			n.take(of, r, from, until)
		}
	}
	slices.SortFunc(n.found, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	n.found = slices.Compact(n.found)
	return n.found
}

func (n *neighbours) take(of *nodeIndex, r *run, from, until time.Time) {
	add := func(all []*run) {
		for _, o := range all {
			ended := !o.span.Until.IsZero()
			if o != r && o.span.From.Before(until) && !(ended && !o.span.Until.After(from)) {
				n.found = append(n.found, o)
			}
		}
	}
	add(of.open)
	add(of.long)
	first, last := hourOf(from), hourOf(until)
	if last-first > int64(len(of.hours)) {
		for _, all := range of.hours {
			add(all)
		}
		return
	}
	for h := first; h <= last; h++ {
		add(of.hours[h])
	}
}
