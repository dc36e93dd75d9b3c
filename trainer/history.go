package trainer

import (
	"container/list"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// Past is a fold over the events of jobs from which examples are made. Its memory is bounded by
// Limits, whatever the length of the log. Equal events in the same order give equal pasts,
// however they are divided.
//
// A run is open until it ends. Then it is reduced to what examples are made of and put on a
// shelf, by configuration, from which the oldest runs are dropped. Its span stays among the
// neighbours of other runs for Limits.Spans further runs; then the load of every epoch that it
// touched is final and stored with the epoch. A past is not safe for concurrent use.
type Past struct {
	limits   Limits
	runs     map[runKey]*run // open, on the shelf, or among the neighbours
	order    []*run          // open or on the shelf, in the order of the log; some dropped
	dropped  int             // of order
	begun    int             // runs so far
	open     *list.List      // of open runs, the longest silent first
	near     *neighbours
	ended    []endedRun // among the neighbours, in the order in which they ended
	shelf    *shelf
	fleet    schemas.Fleet // what jobs told of the nodes of these runs
	nodes    names         // of these runs
	models   names         // of these runs
	datasets names         // of these runs
	last     uint64        // sequence of the last event
	current  epoch         // of the last event
	refused  map[string]map[string]int
}

// endedRun is a run among the neighbours; it is void if the run came back since.
type endedRun struct {
	run  *run
	ends int
}

// NewPast returns the fold before the first event, with the default limits.
func NewPast() *Past { return NewLimitedPast(Limits{}) }

// NewLimitedPast returns the fold before the first event.
func NewLimitedPast(l Limits) *Past {
	p := &Past{
		limits:   l.withDefaults(),
		runs:     map[runKey]*run{},
		open:     list.New(),
		near:     newNeighbours(),
		fleet:    schemas.Fleet{},
		nodes:    names{},
		models:   names{},
		datasets: names{},
		refused:  map[string]map[string]int{"": {}}, // of events (""), and of each target's examples
	}
	p.shelf = newShelf(&p.limits)
	return p
}

// Add takes the next event of the JOB stream, in the order of sequences. Copies change nothing.
func (p *Past) Add(e schemas.Event, sequence uint64) { p.add(e, sequence) }

// add is Add. It returns the run of an event that was new, else nil, and what was kept of an
// epoch, valid until the next call.
func (p *Past) add(e schemas.Event, sequence uint64) (r *run, x *epoch) {
	switch e.(type) {
	case *schemas.Started, *schemas.Epoch, *schemas.Ended:
	default:
		return nil, nil
	}
	if sequence < p.last { // the log is ordered: this was read before
		return nil, nil
	}
	p.last = sequence
	switch e := e.(type) {
	case *schemas.Started:
		r = p.start(e, sequence)
	case *schemas.Epoch:
		r, x = p.addEpoch(e, sequence)
	case *schemas.Ended:
		r = p.end(e)
	}
	if r != nil && r.onOpen != nil {
		r.at = e.Stamped().At
		p.open.MoveToBack(r.onOpen)
	}
	return r, x
}

// run finds or makes a run.
func (p *Past) run(s *schemas.JobStamp, of *schemas.Setting, sequence uint64) *run {
	k := runKey{s.JobID, s.Run}
	if r := p.runs[k]; r != nil {
		return r
	}
	r := &run{key: k, first: sequence, number: p.begun}
	r.model, r.dataset = p.models.take(of.Model), p.datasets.take(of.Dataset)
	r.span.JobID, r.at = s.JobID, s.At
	p.begun++
	p.runs[k] = r
	p.order = append(p.order, r)
	r.onOpen = p.open.PushBack(r)
	if p.open.Len() > p.limits.OpenRuns {
		p.dropOpen(p.open.Front().Value.(*run))
	}
	return r
}

func (p *Past) start(e *schemas.Started, sequence uint64) *run {
	r := p.run(&e.JobStamp, &e.Setting, sequence)
	if r.started || r.outcome != "" {
		return nil
	}
	r.started = true
	r.checkModel(&e.Setting)
	p.locate(r, &e.Setting, e.At)
	r.span.Hardware = p.fleet.See(r.span.Nodes, e.Hardware(), e.NodeCores)
	p.near.begin(r)
	return r
}

// locate sets where a run takes place and since when.
func (p *Past) locate(r *run, s *schemas.Setting, from time.Time) {
	p.near.remove(r)
	before := r.span.Nodes
	r.span.Nodes = p.nodes.takeAll(s.Nodes)
	p.releaseNodes(before)
	r.span.CPUs, r.span.From = s.CPUs, from
}

func (p *Past) addEpoch(e *schemas.Epoch, sequence uint64) (*run, *epoch) {
	r := p.run(&e.JobStamp, &e.Setting, sequence)
	if r.told > 0 && e.Epoch <= r.last {
		if !r.dropped && !r.knows(e) {
			r.back = true
		}
		return nil, nil
	}
	if r.outcome != "" && !r.isLost() {
		p.refused[""][refusedFinished]++
		return nil, nil
	}
	if r.dropped {
		r = p.resume(r, e, sequence)
	}
	r.checkModel(&e.Setting)
	p.current = newEpoch(e, r.before())
	x := &p.current
	if r.span.From.IsZero() { // its start is not in the log
		p.locate(r, &e.Setting, x.begin())
	}
	p.reopen(r)
	if r.told == 0 { // all that is known without a start, or if that told nothing
		p.near.begin(r)
		r.span.Hardware = p.fleet.See(r.span.Nodes, r.span.Hardware, e.NodeCores)
	}
	r.add(x, p.limits.runEpochs(p.open.Len()))
	return r, x
}

// resume begins a run in the place of one that was lost and dropped. What follows teaches as a
// run from a checkpoint does; for its neighbours it is the same run.
func (p *Past) resume(r *run, e *schemas.Epoch, sequence uint64) *run {
	from, hardware := r.span.From, r.span.Hardware
	p.near.remove(r)
	p.forget(r)
	next := p.run(&e.JobStamp, &e.Setting, sequence)
	p.locate(next, &e.Setting, from)
	next.span.Hardware = hardware
	return next
}

// reopen undoes the end of a run that was lost and is back.
func (p *Past) reopen(r *run) {
	if r.outcome == "" {
		return
	}
	p.near.remove(r)
	p.shelf.remove(r)
	r.outcome, r.span.Until = "", time.Time{}
	r.onOpen = p.open.PushBack(r)
	p.near.begin(r)
}

func (p *Past) end(e *schemas.Ended) *run {
	r := p.runs[runKey{e.JobID, e.Run}]
	if r == nil || r.outcome != "" && !r.isLost() || e.EventID == r.lost {
		return nil
	}
	if r.outcome != "" { // lost before
		if r.dropped {
			return nil
		}
		p.shelf.remove(r)
	} else {
		p.open.Remove(r.onOpen)
		r.onOpen = nil
	}
	p.near.remove(r)
	r.outcome, r.span.Until, r.at = e.Outcome, e.At, e.At
	r.ends++
	if r.isLost() {
		r.lost = e.EventID
	}
	r.epochs = slices.Clip(slices.Clone(r.epochs))
	r.whole = wholeOf(r, e)
	p.near.end(r)
	p.ended = append(p.ended, endedRun{r, r.ends})
	for _, old := range p.shelf.add(r, p.configurationOf(r, e)) {
		p.drop(old)
	}
	p.settle()
	return r
}

// wholeOf returns what a run teaches whose epochs were not recognised; nil if it has epochs, or
// teaches nothing.
func wholeOf(r *run, e *schemas.Ended) *wholeRun {
	finished := e.Outcome == schemas.EventFinished && e.EpochsDone > 0 && e.DurationSeconds > 0
	if r.told > 0 || !finished {
		return nil
	}
	w := &wholeRun{epochs: e.EpochsDone, batch: e.BatchSize, cpus: e.CPUs, seconds: e.DurationSeconds,
		accuracy: orNaN(e.Accuracy), at: e.At}
	if e.StartupSeconds != nil {
		w.startup = *e.StartupSeconds
	}
	return w
}

// configurationOf returns the configuration of a run that has ended.
func (p *Past) configurationOf(r *run, e *schemas.Ended) configuration {
	l := p.measure(r, r.span.From, r.span.Until)
	c := configuration{
		model:    r.model,
		dataset:  r.dataset,
		batch:    e.BatchSize,
		cpus:     r.span.CPUs,
		jobs:     int(math.Round(l.jobs)),
		hardware: p.hardware(r, l.node).Rounded(),
	}
	if len(r.epochs) > 0 {
		c.batch = r.epochs[0].batch
	}
	return c
}

// drop forgets what a run teaches, and all of it unless its neighbours need its span.
func (p *Past) drop(r *run) {
	r.drop()
	p.dropped++
	if r.indexed == notIndexed {
		p.forget(r)
	}
	if p.dropped > len(p.order)/2 {
		p.order = slices.DeleteFunc(p.order, func(r *run) bool { return r.dropped })
		p.dropped = 0
	}
}

// dropOpen drops a run that has not ended. For its neighbours it ended with its last event.
func (p *Past) dropOpen(r *run) {
	p.open.Remove(r.onOpen)
	r.onOpen = nil
	p.near.remove(r)
	r.outcome, r.span.Until = schemas.EventLost, r.lastKnown()
	r.ends++
	p.near.end(r)
	p.ended = append(p.ended, endedRun{r, r.ends})
	p.drop(r)
	p.settle()
}

// forget ends the life of a run.
func (p *Past) forget(r *run) {
	delete(p.runs, r.key)
	p.releaseNodes(r.span.Nodes)
	p.models.release(r.model)
	p.datasets.release(r.dataset)
}

func (p *Past) releaseNodes(nodes []string) {
	for _, node := range nodes {
		if p.nodes.release(node) {
			delete(p.fleet, node)
		}
	}
}

// Expire drops the runs whose last event happened before an instant.
func (p *Past) Expire(before time.Time) {
	for _, r := range slices.Clone(p.order) {
		switch {
		case r.dropped || !r.at.Before(before):
		case r.onOpen != nil:
			p.dropOpen(r)
		default:
			p.shelf.remove(r)
			p.drop(r)
		}
	}
}

// Len returns how many runs and epochs a past keeps.
func (p *Past) Len() (runs, epochs int) {
	runs, epochs = p.shelf.runs+p.open.Len(), p.shelf.epochs
	for at := p.open.Front(); at != nil; at = at.Next() {
		epochs += len(at.Value.(*run).epochs)
	}
	return runs, epochs
}

// Refused returns how many events, and examples of the targets that were asked for, were left
// out, by reason.
func (p *Past) Refused() map[string]int {
	all := map[string]int{}
	for _, of := range p.refused {
		for why, n := range of {
			all[why] += n
		}
	}
	return all
}

// refuse counts an example that is left out.
func (p *Past) refuse(target, why string) {
	if of := p.refused[target]; of != nil { // else nobody asked for all
		of[why]++
	}
}
