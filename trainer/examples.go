package trainer

import (
	"math"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// Examples returns the examples of a target, oldest run first.
func (p *Past) Examples(target string) []Example {
	var all []Example
	seen, refused := map[modelTimes]bool{}, map[string]int{}
	p.skipped[target], p.aside = refused, nil
	for _, r := range p.order {
		if r.dropped {
			continue
		}
		if why := r.implausible(seen); why != "" {
			refused[why]++
			p.aside = append(p.aside, evidence.SetAside{
				Run: jobRun(r.span.JobID, r.key.run), Reason: "it is a " + why,
			})
			continue
		}
		all = p.appendExamples(all, r, target)
	}
	return all
}

// appendExamples appends the examples of a run.
func (p *Past) appendExamples(all []Example, r *run, target string) []Example {
	if target == schemas.TargetStartup {
		if x, ok := p.startup(r); ok {
			all = append(all, x)
		}
		return all
	}
	for i := range r.epochs {
		if x, ok := p.example(r, &r.epochs[i], i < r.frozen, target); ok {
			all = append(all, x)
		}
	}
	return all
}

// newExample returns an example of a run without its value.
func (p *Past) newExample(r *run, l runLoad, batch, cpus uint32, at time.Time) Example {
	full, on := p.loadOf(r, l)
	model, batch := schemas.LearnedAs(r.model, batch)
	return Example{
		Job:      r.span.JobID,
		Run:      r.key.run,
		Model:    model,
		Dataset:  r.dataset,
		Nodes:    r.span.Nodes,
		Hardware: on,
		Features: schemas.Features{BatchSize: batch, CPUs: cpus, Load: full},
		At:       at,
		EndedAt:  r.span.Until,
	}
}

// example returns the example of an epoch; ok is false if it must be skipped. isFinal reports
// whether the load of the epoch is final.
func (p *Past) example(r *run, e *keptEpoch, isFinal bool, target string) (x Example, ok bool) {
	if target == schemas.TargetAccuracy && (math.IsNaN(e.accuracy) || e.afterBatchChange) {
		// The weights were trained with two batch sizes, so the accuracy belongs to neither.
		return x, !math.IsNaN(e.accuracy) && p.skip(target, skippedMixed)
	}
	l := e.load
	if !isFinal {
		l = p.measureEpoch(r, e)
	}
	if r.isElastic { // the load counts it with its CPUs at the start
		l.Processes += float64(e.cpus) - float64(r.span.CPUs)
	}
	x = p.newExample(r, l, e.batch, e.cpus, e.end())
	x.Features.EpochsDone, x.Count, x.Seconds = e.number, int(max(1, e.count)), e.seconds
	if target == schemas.TargetAccuracy {
		x.Value = e.accuracy
		return x, true
	}
	x.Model = schemas.TimedModel(x.Model, e.loaders)
	x.Value = e.seconds / float64(x.Count)
	switch {
	case e.timedByArrival && r.epochCount > 1 && e.mayContainStartup:
		return x, p.skip(target, skippedStartup)
	case e.hasBurst:
		return x, p.skip(target, skippedBurst)
	}
	return x, true
}

// startup returns an example of the time that a run spends before its first epoch; ok is false if the
// run does not show it. What it does after its last epoch does not count for its SLO.
func (p *Past) startup(r *run) (x Example, ok bool) {
	if len(r.epochs) == 0 {
		return x, false
	}
	e := &r.epochs[0]
	seconds := e.begin().Sub(r.span.From).Seconds()
	if e.timedByArrival && e.mayContainStartup {
		if len(r.epochs) == 1 || r.epochs[1].afterBatchChange {
			return x, false
		}
		// The epoch counts as long as the second one; the rest of its time is start-up.
		seconds += e.seconds - r.epochs[1].seconds
	}
	if e.number != 1 || !(seconds > 0) {
		return x, false
	}
	x = p.newExample(r, p.loadBefore(r, e.begin(), r.startLoad), e.batch, e.cpus, e.end())
	x.Model, x.Value = schemas.TimedModel(x.Model, e.loaders), seconds
	return x, true
}
