package trainer

import (
	"math"
	"time"

	"courier/schemas"
)

// Example is what a regressor learns from.
type Example struct {
	Job      string // that it is of; "": one of its own
	Run      uint32 // of that job
	Model    string
	Dataset  string           // that the model was trained on; "" if none was named
	Nodes    []string         // that the job ran on
	Hardware schemas.Hardware // of the most loaded of them
	Features schemas.Features // ModelCode and Node are not set
	Value    float64          // of the target
	Weight   float64
	At       time.Time
	EndedAt  time.Time // of the run; zero while it runs
	WholeRun bool      // the mean of the epochs of a run, of which none was timed
	Seconds  float64   // that it took until At
}

// level names what was trained, as the levels of schemas.ColumnModel do.
func (x *Example) level() string { return schemas.ModelLevel(x.Model, x.Dataset) }

// Reasons for leaving something out.
const (
	refusedUnstable = "concurrency changed for most of the epoch"
	refusedFinished = "epoch after the end of its run"
	refusedStartup  = "first epoch was timed by arrival: it contains the start-up"
	refusedMixed    = "accuracy of epochs with several batch sizes"
)

// Examples returns what the past teaches about a target, oldest run first.
func (p *Past) Examples(target string) []Example {
	var all []Example
	seen, refused := map[uint64]bool{}, map[string]int{}
	p.refused[target] = refused
	for _, r := range p.order {
		if r.dropped {
			continue
		}
		if why := r.implausible(seen); why != "" {
			refused[why]++
			continue
		}
		all = p.appendExamples(all, r, target)
	}
	return all
}

// appendExamples appends what a run teaches about a target.
func (p *Past) appendExamples(all []Example, r *run, target string) []Example {
	switch {
	case target == schemas.TargetStartup:
		if x, ok := p.startup(r); ok {
			all = append(all, x)
		}
	case r.told == 0:
		if x, ok := p.wholeJob(r, target); ok {
			all = append(all, x)
		}
	default:
		for i := range r.epochs {
			if x, ok := p.example(r, &r.epochs[i], i < r.frozen, target); ok {
				all = append(all, x)
			}
		}
	}
	return all
}

// newExample returns an example of a run without value and weight.
func (p *Past) newExample(r *run, l load, batch, cpus uint32, at time.Time) Example {
	full, on := p.loadOf(r, l)
	return Example{
		Job:      r.span.JobID,
		Run:      r.key.run,
		Model:    r.model,
		Dataset:  r.dataset,
		Nodes:    r.span.Nodes,
		Hardware: on,
		Features: schemas.Features{BatchSize: batch, CPUs: cpus, Load: full},
		At:       at,
		EndedAt:  r.span.Until,
	}
}

// example makes an example of an epoch; ok is false if it teaches nothing. isFinal says that
// the load of the epoch is final.
func (p *Past) example(r *run, e *epoch, isFinal bool, target string) (x Example, ok bool) {
	if target == schemas.TargetAccuracy && (math.IsNaN(e.accuracy) || e.mixed) {
		// The network keeps what it learnt with the first batch size: an accuracy after a change
		// belongs to neither.
		if !math.IsNaN(e.accuracy) {
			p.refuse(target, refusedMixed)
		}
		return x, false
	}
	l := e.load
	if !isFinal {
		l = p.measureEpoch(r, e)
	}
	x = p.newExample(r, l, e.batch, e.cpus, e.end())
	x.Features.EpochsDone, x.Seconds = e.number, e.seconds
	if target == schemas.TargetAccuracy {
		// A run counts once, however many epochs it has (models: accuracy).
		x.Value, x.Weight = e.accuracy, 1/float64(max(r.pure, 1))
		return x, true
	}
	x.Value, x.Weight = e.seconds, x.Features.Load.ExampleWeight()
	switch {
	case x.Weight == 0:
		p.refuse(target, refusedUnstable)
	case e.arrival && r.told > 1 && e.starts:
		p.refuse(target, refusedStartup)
		x.Weight = 0
	}
	return x, x.Weight > 0
}

// meanOfLater returns the mean seconds of the epochs behind the first that ran with its batch size;
// NaN if there is none.
func (r *run) meanOfLater() float64 {
	sum, n := 0.0, 0.0
	for i := 1; i < len(r.epochs) && !r.epochs[i].mixed; i++ {
		sum, n = sum+r.epochs[i].seconds, n+1
	}
	return sum / n
}

// startup makes an example of the time that a run spends outside its epochs: before the first, and
// after the last of a finished run. ok is false if the output of the run does not show it.
func (p *Past) startup(r *run) (x Example, ok bool) {
	if len(r.epochs) == 0 {
		return x, false
	}
	e := &r.epochs[0]
	seconds := e.begin().Sub(r.span.From).Seconds()
	if e.arrival { // its time contains the start-up
		seconds = e.seconds - r.meanOfLater()
	}
	if e.number != 1 || !(seconds > 0) {
		return x, false
	}
	if r.outcome == schemas.EventFinished {
		seconds += max(0, r.span.Until.Sub(r.epochs[len(r.epochs)-1].end()).Seconds())
	}
	var l load
	if r.startLoad != nil {
		l = *r.startLoad
	} else {
		l = p.measure(r, r.span.From, e.begin())
	}
	x = p.newExample(r, l, e.batch, e.cpus, e.end())
	x.Value, x.Weight = seconds, 1
	return x, true
}

// wholeJob makes one example of a finished run whose epochs were not recognised: its time, less
// the start-up where that is known, divided by its epochs, or its accuracy after them.
func (p *Past) wholeJob(r *run, target string) (x Example, ok bool) {
	w := r.whole
	if w == nil || target == schemas.TargetAccuracy && math.IsNaN(w.accuracy) {
		return x, false
	}
	var l load
	if w.load != nil {
		l = *w.load
	} else {
		l = p.measure(r, r.span.From, w.at)
	}
	x = p.newExample(r, l, w.batch, w.cpus, w.at)
	x.WholeRun, x.Seconds, x.Features.EpochsDone = true, w.seconds, w.epochs
	if target == schemas.TargetAccuracy {
		x.Value, x.Weight = w.accuracy, 1
		return x, true
	}
	seconds := w.seconds
	if w.startup > 0 && w.startup < seconds {
		seconds -= w.startup
	}
	x.Value, x.Weight = seconds/float64(w.epochs), x.Features.Load.ExampleWeight()
	if x.Weight == 0 {
		p.refuse(target, refusedUnstable)
	}
	return x, x.Weight > 0
}
