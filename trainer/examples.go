package trainer

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Past is a fold over the events of jobs from which examples are made.
type Past struct {
	seen    map[string]bool // event IDs: a copy changes nothing
	runs    map[runKey]*run
	order   []*run
	near    *neighbours
	fleet   schemas.Fleet             // what jobs told of their nodes
	last    uint64                    // sequence of the last event
	refused map[string]map[string]int // of each target's examples, and of events (""), how many were left out, by reason
}

type runKey struct {
	job string
	run uint32
}

// run is one start of a job.
type run struct {
	span    schemas.Span
	first   uint64           // sequence of its first event
	number  int              // in the order of the log
	listed  []string         // nodes under which its neighbours find it while it runs
	epochs  []*schemas.Epoch // by number
	pure    int              // of the first of them, that ran with one batch size
	back    bool             // an epoch came whose number was not above the last
	model   string           // as its first event says
	strange bool             // another event says another one
	ended   *schemas.Ended
}

// NewPast returns the fold before the first event.
func NewPast() *Past {
	return &Past{seen: map[string]bool{}, runs: map[runKey]*run{}, near: newNeighbours(), fleet: schemas.Fleet{}, refused: map[string]map[string]int{"": {}}}
}

// Reasons for leaving something out.
const (
	refusedUnstable = "concurrency changed for most of the epoch"
	refusedFinished = "epoch after the end of its run"
	refusedStartup  = "first epoch was timed by arrival: it contains the start-up"
	refusedMixed    = "accuracy of epochs with several batch sizes"
)

// Add takes the next event of the JOB stream, in the order of sequences.
func (p *Past) Add(e schemas.Event, sequence uint64) {
	if p.seen[e.ID()] {
		return
	}
	p.last = max(p.last, sequence)
	switch e := e.(type) {
	case *schemas.Started:
		p.seen[e.ID()] = true
		r := p.run(e.JobID, e.Run, sequence)
		r.says(&e.Setting)
		r.span = schemas.Span{JobID: e.JobID, Nodes: e.Nodes, CPUs: e.CPUs, From: e.At, Hardware: p.fleet.See(e.Nodes, e.Hardware(), e.NodeCores)}
		p.near.begin(r)
	case *schemas.Epoch:
		p.seen[e.ID()] = true
		p.addEpoch(e, sequence)
	case *schemas.Ended:
		p.seen[e.ID()] = true
		p.end(e)
	}
}

// run finds or makes a run.
func (p *Past) run(job string, number uint32, sequence uint64) *run {
	k := runKey{job, number}
	r := p.runs[k]
	if r == nil {
		r = &run{span: schemas.Span{JobID: job}, first: sequence, number: len(p.order)}
		p.runs[k] = r
		p.order = append(p.order, r)
	}
	return r
}

func (p *Past) addEpoch(e *schemas.Epoch, sequence uint64) {
	r := p.run(e.JobID, e.Run, sequence)
	r.says(&e.Setting)
	if r.ended != nil && r.ended.Outcome != schemas.EventLost {
		p.refused[""][refusedFinished]++
		return
	}
	if n := len(r.epochs); n > 0 && e.Epoch <= r.epochs[n-1].Epoch {
		r.back = true
		return
	}
	if r.span.From.IsZero() { // its start is not in the log
		r.span = schemas.Span{JobID: e.JobID, Nodes: e.Nodes, CPUs: e.CPUs, From: begin(e)}
	}
	if len(r.epochs) == 0 || r.ended != nil {
		r.ended, r.span.Until = nil, time.Time{} // a lost job is back
		p.near.begin(r)
	}
	if len(r.epochs) == 0 { // all that there is where the start is not in the log, or told nothing
		r.span.Hardware = p.fleet.See(e.Nodes, r.span.Hardware, e.NodeCores)
	}
	if r.pure == len(r.epochs) && (r.pure == 0 || r.epochs[0].BatchSize == e.BatchSize) {
		r.pure++
	}
	r.epochs = append(r.epochs, e)
}

func (p *Past) end(e *schemas.Ended) {
	r := p.runs[runKey{e.JobID, e.Run}]
	if r == nil || r.ended != nil && r.ended.Outcome != schemas.EventLost {
		return
	}
	r.ended, r.span.Until = e, e.At
	p.near.end(r)
}

// begin is when an epoch began.
func begin(e *schemas.Epoch) time.Time {
	return e.At.Add(-time.Duration(e.DurationSeconds * float64(time.Second)))
}

// Example is what a regressor learns from.
type Example struct {
	Job      string // that it is of; "": one of its own
	Model    string
	Nodes    []string         // that the job ran on
	Hardware schemas.Hardware // of the most loaded of them
	Features schemas.Features // ModelCode and Node are not set
	Value    float64          // of the target
	Weight   float64
	At       time.Time
}

// load returns the load of a run over some time, and the node where it is that, as all
// jobs before and since tell of it.
func (p *Past) load(r *run, spans []schemas.Span, from, until time.Time) (schemas.Load, schemas.Hardware) {
	self := r.span
	self.Hardware = make([]schemas.Hardware, len(self.Nodes))
	for i, node := range self.Nodes {
		var told schemas.Hardware
		if i < len(r.span.Hardware) {
			told = r.span.Hardware[i]
		}
		self.Hardware[i] = p.fleet.Complete(node, told)
	}
	return schemas.LoadBetween(self, spans, from, until)
}

// beside returns the runs that touch the time of a run.
func (p *Past) beside(r *run) []schemas.Span { return p.near.of(r) }

// Examples returns what the past teaches about a target, oldest run first.
func (p *Past) Examples(target string) []Example {
	var all []Example
	times, refused := map[string]bool{}, map[string]int{}
	p.refused[target] = refused
	for _, r := range p.order {
		if why := r.lie(times); why != "" {
			refused[why]++
			continue
		}
		spans := p.beside(r)
		if target == schemas.TargetStartup {
			if x, ok := p.startup(r, spans); ok {
				all = append(all, x)
			}
			continue
		}
		if len(r.epochs) == 0 {
			all = append(all, p.wholeJob(r, spans, target)...)
			continue
		}
		for _, e := range r.epochs {
			if x, ok := p.example(r, spans, e, target); ok {
				all = append(all, x)
			}
		}
	}
	return all
}

// Refused is how many events, and examples of the targets that were asked for, were
// left out, by reason.
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

// example makes an example of an epoch; ok is false if it has nothing to say.
func (p *Past) example(r *run, spans []schemas.Span, e *schemas.Epoch, target string) (x Example, ok bool) {
	load, on := p.load(r, spans, begin(e), e.At)
	x = Example{Job: r.span.JobID, Model: e.Model, Nodes: e.Nodes, Hardware: on, At: e.At, Features: schemas.Features{BatchSize: e.BatchSize, CPUs: e.CPUs, Load: load, EpochsDone: e.Epoch}}
	if target == schemas.TargetAccuracy {
		if e.Accuracy == nil {
			return x, false
		}
		// What was learnt with one batch size stays in the network: no accuracy
		// behind a change is that of either.
		if e.Epoch > r.epochs[r.pure-1].Epoch {
			p.refuse(target, refusedMixed)
			return x, false
		}
		// A run counts once, however many epochs it has (models: accuracy).
		x.Value, x.Weight = *e.Accuracy, 1/float64(r.pure)
		return x, true
	}
	x.Value, x.Weight = e.DurationSeconds, load.ExampleWeight()
	switch {
	case x.Weight == 0:
		p.refuse(target, refusedUnstable)
	case e.DurationSource == schemas.DurationArrival && len(r.epochs) > 1 && r.starts(e):
		p.refuse(target, refusedStartup)
		x.Weight = 0
	}
	return x, x.Weight > 0
}

// starts reports whether the command may have been started within the epoch: it
// is the first, or the first with another batch size.
func (r *run) starts(e *schemas.Epoch) bool {
	i, _ := slices.BinarySearchFunc(r.epochs, e.Epoch, func(o *schemas.Epoch, number uint32) int { return cmp.Compare(o.Epoch, number) })
	return i == 0 || r.epochs[i-1].BatchSize != e.BatchSize
}

// startup makes an example of how long a run took to its first epoch; ok is
// false if its output does not tell.
func (p *Past) startup(r *run, spans []schemas.Span) (x Example, ok bool) {
	if len(r.epochs) == 0 {
		return x, false
	}
	e := r.epochs[0]
	seconds := begin(e).Sub(r.span.From).Seconds()
	if e.Epoch != 1 || e.DurationSource != schemas.DurationReported || seconds <= 0 {
		return x, false
	}
	load, on := p.load(r, spans, r.span.From, begin(e))
	return Example{Job: r.span.JobID, Model: e.Model, Nodes: e.Nodes, Hardware: on, At: e.At, Value: seconds, Weight: 1, Features: schemas.Features{BatchSize: e.BatchSize, CPUs: e.CPUs, Load: load}}, true
}

// wholeJob makes one example of a finished run whose epochs were not recognised:
// its time, less the start-up where that is known, over its epochs, or its
// accuracy after them.
func (p *Past) wholeJob(r *run, spans []schemas.Span, target string) []Example {
	e := r.ended
	if e == nil || e.Outcome != schemas.EventFinished || e.Epochs == 0 || e.DurationSeconds <= 0 {
		return nil
	}
	load, on := p.load(r, spans, r.span.From, e.At)
	x := Example{Job: r.span.JobID, Model: e.Model, Nodes: e.Nodes, Hardware: on, At: e.At, Features: schemas.Features{BatchSize: e.BatchSize, CPUs: e.CPUs, Load: load}}
	if target == schemas.TargetAccuracy {
		if e.Accuracy == nil {
			return nil
		}
		x.Value, x.Weight, x.Features.EpochsDone = *e.Accuracy, 1, e.Epochs
		return []Example{x}
	}
	x.Value, x.Weight = e.DurationSeconds/float64(e.Epochs), load.ExampleWeight()
	if s := e.StartupSeconds; s != nil && *s > 0 && *s < e.DurationSeconds {
		x.Value = (e.DurationSeconds - *s) / float64(e.Epochs)
	}
	if x.Weight == 0 {
		p.refuse(target, refusedUnstable)
		return nil
	}
	return []Example{x}
}
