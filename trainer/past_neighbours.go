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

// neighbours is an index of runs by node and time. It holds the open runs and runs that ended
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

func (n *neighbours) index(node string) *nodeIndex {
	index := n.nodes[node]
	if index == nil {
		index = &nodeIndex{hours: map[int64][]*run{}}
		n.nodes[node] = index
	}
	return index
}

// begin adds an open run.
func (n *neighbours) begin(r *run) {
	n.remove(r)
	r.indexedNodes, r.indexed = r.span.Nodes, indexedOpen
	for _, node := range r.indexedNodes {
		index := n.index(node)
		index.open = append(index.open, r)
	}
}

// end moves an ended run to its hours.
func (n *neighbours) end(r *run) {
	n.remove(r)
	r.indexedNodes, r.indexed = r.span.Nodes, indexedEnded
	first, last := hourOf(r.span.From), hourOf(r.span.Until)
	for _, node := range r.indexedNodes {
		index := n.index(node)
		if last-first >= longRun {
			index.long = append(index.long, r)
			continue
		}
		for h := first; h <= last; h++ {
			index.hours[h] = append(index.hours[h], r)
		}
	}
}

// remove removes a run from the index. Its span must not have changed since it was added, except
// for the end of an open run.
func (n *neighbours) remove(r *run) {
	for _, node := range r.indexedNodes {
		index := n.nodes[node]
		if index == nil {
			continue
		}
		index.remove(r)
		if len(index.open)+len(index.long)+len(index.hours) == 0 {
			delete(n.nodes, node)
		}
	}
	r.indexedNodes, r.indexed = nil, notIndexed
}

func (index *nodeIndex) remove(r *run) {
	if r.indexed == indexedOpen {
		index.open = without(index.open, r)
		return
	}
	first, last := hourOf(r.span.From), hourOf(r.span.Until)
	if last-first >= longRun {
		index.long = without(index.long, r)
		return
	}
	for h := first; h <= last; h++ {
		if index.hours[h] = without(index.hours[h], r); len(index.hours[h]) == 0 {
			delete(index.hours, h)
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
		if index := n.nodes[node]; index != nil {
			n.collect(index, r, from, until)
		}
	}
	slices.SortFunc(n.found, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	n.found = slices.Compact(n.found)
	return n.found
}

func (n *neighbours) collect(index *nodeIndex, r *run, from, until time.Time) {
	add := func(all []*run) {
		for _, o := range all {
			ended := !o.span.Until.IsZero()
			if o != r && o.span.From.Before(until) && !(ended && !o.span.Until.After(from)) {
				n.found = append(n.found, o)
			}
		}
	}
	add(index.open)
	add(index.long)
	first, last := hourOf(from), hourOf(until)
	if last-first > int64(len(index.hours)) {
		for _, all := range index.hours {
			add(all)
		}
		return
	}
	for h := first; h <= last; h++ {
		add(index.hours[h])
	}
}
