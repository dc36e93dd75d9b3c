package trainer

import (
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// Add applies the next event of the JOB stream, in the order of sequences. Duplicates are ignored.
func (p *Past) Add(e schemas.Event, sequence uint64) { p.add(e, sequence) }

// add is Add. It returns the run that a new event changed; nil for other events.
func (p *Past) add(e schemas.Event, sequence uint64) (r *run) {
	switch e.(type) {
	case *schemas.Started, *schemas.Epoch, *schemas.Ended:
	default:
		return nil
	}
	if sequence < p.last { // already applied
		return nil
	}
	p.last = sequence
	switch e := e.(type) {
	case *schemas.Started:
		r = p.start(e)
	case *schemas.Epoch:
		r = p.addEpoch(e)
	case *schemas.Ended:
		r = p.end(e)
	}
	if r != nil && r.inOpen != nil {
		r.at = e.Stamped().At
		p.open.MoveToBack(r.inOpen)
	}
	return r
}

// run returns the run of an event, created on first use.
func (p *Past) run(s *schemas.JobStamp, of *schemas.Setting) *run {
	k := runKey{s.JobID, s.Run}
	if r := p.runs[k]; r != nil {
		return r
	}
	r := &run{key: k, number: p.begun, model: of.LearnedModel(), dataset: of.Dataset}
	r.span.JobID, r.at = s.JobID, s.At
	p.begun++
	p.runs[k] = r
	p.order = append(p.order, r)
	r.inOpen = p.open.PushBack(r)
	if p.open.Len() > p.limits.OpenRuns {
		p.dropOpen(p.open.Front().Value.(*run))
	}
	return r
}

func (p *Past) start(e *schemas.Started) *run {
	r := p.run(&e.JobStamp, &e.Setting)
	if r.hasStarted || r.outcome != "" {
		return nil
	}
	r.hasStarted = true
	r.isElastic = slices.Contains(e.Moves, schemas.MoveCPUs)
	r.checkModel(&e.Setting)
	p.locate(r, &e.Setting, e.At)
	r.span.Hardware = p.fleet.See(r.span.Nodes, e.Hardware(), e.NodeCores)
	p.neighbours.begin(r)
	return r
}

// locate sets the nodes, CPUs and start of a run.
func (p *Past) locate(r *run, s *schemas.Setting, from time.Time) {
	p.neighbours.remove(r)
	for _, node := range s.Nodes {
		p.nodes[node]++
	}
	p.releaseNodes(r.span.Nodes)
	r.span.Nodes = slices.Clone(s.Nodes)
	r.span.CPUs, r.span.From = s.Processes(), from
}

func (p *Past) addEpoch(e *schemas.Epoch) *run {
	r := p.run(&e.JobStamp, &e.Setting)
	if r.epochCount > 0 && e.Epoch <= r.last {
		r.wentBack = r.wentBack || !r.dropped && !r.isDuplicate(e)
		return nil
	}
	if r.outcome != "" && !r.isLost() {
		p.skipped[""][skippedFinished]++
		return nil
	}
	if r.dropped { // it was lost and has no examples any more
		return nil
	}
	r.checkModel(&e.Setting)
	x := newEpoch(e, r.previousEnd())
	x.hasBurst = r.isElastic && e.IsBurst()
	if r.span.From.IsZero() { // its started event is not in the log
		p.locate(r, &e.Setting, x.begin())
	}
	p.reopen(r)
	if r.epochCount == 0 { // the started event may be missing, or may not report the hardware
		p.neighbours.begin(r)
		r.span.Hardware = p.fleet.See(r.span.Nodes, r.span.Hardware, e.NodeCores)
	}
	r.add(&x, p.limits.runEpochs(p.open.Len()))
	return r
}

// reopen reopens a lost run that sends events again.
func (p *Past) reopen(r *run) {
	if r.outcome == "" {
		return
	}
	p.neighbours.remove(r)
	p.archive.remove(r)
	r.outcome, r.span.Until = "", time.Time{}
	r.inOpen = p.open.PushBack(r)
	p.neighbours.begin(r)
}

func (p *Past) end(e *schemas.Ended) *run {
	r := p.runs[runKey{e.JobID, e.Run}]
	if r == nil || r.outcome != "" && !r.isLost() || e.EventID == r.lostID {
		return nil
	}
	if r.outcome != "" { // lost before
		if r.dropped {
			return nil
		}
		p.archive.remove(r)
	} else {
		p.open.Remove(r.inOpen)
		r.inOpen = nil
	}
	p.neighbours.remove(r)
	r.outcome, r.span.Until, r.at = e.Outcome, e.At, e.At
	r.ends++
	if r.isLost() {
		r.lostID = e.EventID
	}
	r.epochs = slices.Clip(slices.Clone(r.epochs))
	if x, ok := wholeRun(r, e); ok {
		r.epochs = []keptEpoch{x}
	}
	p.neighbours.end(r)
	p.ended = append(p.ended, endedRun{r, r.ends})
	for _, old := range p.archive.add(r, p.configurationOf(r, e)) {
		p.drop(old)
	}
	p.evictNeighbours()
	return r
}

// wholeRun returns a finished run whose epochs were not recognized as one measurement of all of them,
// less a known start-up; ok is false for any other run.
func wholeRun(r *run, e *schemas.Ended) (x keptEpoch, ok bool) {
	finished := e.Outcome == schemas.EventFinished && e.EpochsDone > 0 && e.DurationSeconds > 0
	if r.epochCount > 0 || !finished {
		return x, false
	}
	x = keptEpoch{
		at:       e.At.UnixNano(),
		seconds:  e.DurationSeconds,
		accuracy: orNaN(e.Accuracy),
		number:   e.EpochsDone,
		count:    e.EpochsDone,
		batch:    e.BatchSize,
		cpus:     e.Processes(),
		loaders:  e.Loaders,
	}
	if s := e.StartupSeconds; s != nil && *s > 0 && *s < x.seconds {
		x.seconds -= *s
	}
	return x, true
}

// configurationOf returns the configuration of an ended run.
func (p *Past) configurationOf(r *run, e *schemas.Ended) configuration {
	l := p.measure(r, r.span.From, r.span.Until)
	c := configuration{
		model:    r.model,
		dataset:  r.dataset,
		batch:    e.BatchSize,
		cpus:     r.span.CPUs,
		jobs:     int(math.Round(l.ConcurrentJobs)),
		hardware: p.hardware(r, l.node).Rounded(),
	}
	if len(r.epochs) > 0 {
		c.batch = r.epochs[0].batch
	}
	return c
}

// drop drops the examples of a run, and the run itself unless other runs need its span.
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

// dropOpen drops an open run. For its neighbours it ended with its last event.
func (p *Past) dropOpen(r *run) {
	p.open.Remove(r.inOpen)
	r.inOpen = nil
	p.neighbours.remove(r)
	r.outcome, r.span.Until = schemas.EventLost, r.lastKnown()
	r.ends++
	p.neighbours.end(r)
	p.ended = append(p.ended, endedRun{r, r.ends})
	p.drop(r)
	p.evictNeighbours()
}

// Expire drops the runs whose last event is older than an instant.
func (p *Past) Expire(before time.Time) {
	for _, r := range slices.Clone(p.order) {
		switch {
		case r.dropped || !r.at.Before(before):
		case r.inOpen != nil:
			p.dropOpen(r)
		default:
			p.archive.remove(r)
			p.drop(r)
		}
	}
}

// Len returns the number of runs and epochs in the past.
func (p *Past) Len() (runs, epochs int) {
	runs, epochs = p.archive.runs+p.open.Len(), p.archive.epochs
	for at := p.open.Front(); at != nil; at = at.Next() {
		epochs += len(at.Value.(*run).epochs)
	}
	return runs, epochs
}

// Skipped returns the number of skipped events and examples by reason. It counts examples of the
// targets that were passed to Examples.
func (p *Past) Skipped() map[string]int {
	all := map[string]int{}
	for _, of := range p.skipped {
		for why, n := range of {
			all[why] += n
		}
	}
	return all
}

// skip counts a skipped example. It returns false: there is no example.
func (p *Past) skip(target, why string) bool {
	if of := p.skipped[target]; of != nil { // nil before the first call of Examples
		of[why]++
	}
	return false
}
