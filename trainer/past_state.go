package trainer

import (
	"container/list"

	"courier/regress/evidence"
	"courier/schemas"
)

// Past turns the events of jobs into examples. Limits bound its memory. The result depends only on
// the events and their order, even across restarts. A Past is not safe for concurrent use.
//
// A run is open until it ends. Then it is reduced to the data of its examples and moved to the
// archive, which drops the oldest runs of each configuration. Its span stays among the neighbours
// of other runs for Limits.Spans further runs. After that the loads of all epochs that it overlaps
// are final and stored with these epochs.
type Past struct {
	limits     Limits
	runs       map[runKey]*run // open, archived, or among the neighbours
	order      []*run          // open or archived, in the order of the log; some are dropped
	dropped    int             // dropped runs in order
	begun      int             // number of runs so far
	open       *list.List      // of open runs, the one with the oldest last event first
	neighbours *neighbours
	ended      []endedRun // among the neighbours, in the order of their ends
	archive    *archive
	fleet      schemas.Fleet  // hardware of the nodes in runs, as jobs reported it
	nodes      map[string]int // number of runs that name the node
	last       uint64         // sequence of the last event
	skipped    map[string]map[string]int
	aside      []evidence.SetAside // runs that the last call of Examples left out
}

// endedRun is a run among the neighbours. It is stale if the run continued after it: then run.ends
// is larger.
type endedRun struct {
	run  *run
	ends int
}

// NewPast returns an empty Past with the default limits.
func NewPast() *Past { return NewLimitedPast(Limits{}) }

// NewLimitedPast returns an empty Past.
func NewLimitedPast(l Limits) *Past {
	p := &Past{
		limits:     l.withDefaults(),
		runs:       map[runKey]*run{},
		open:       list.New(),
		neighbours: &neighbours{nodes: map[string]*nodeIndex{}},
		fleet:      schemas.Fleet{},
		nodes:      map[string]int{},
		skipped:    map[string]map[string]int{"": {}}, // by target; "" counts events
	}
	p.archive = newArchive(&p.limits)
	return p
}

// forget removes a run from the past.
func (p *Past) forget(r *run) {
	delete(p.runs, r.key)
	p.releaseNodes(r.span.Nodes)
}

func (p *Past) releaseNodes(nodes []string) {
	for _, node := range nodes {
		if p.nodes[node]--; p.nodes[node] == 0 {
			delete(p.nodes, node)
			delete(p.fleet, node)
		}
	}
}
