package importer

import (
	"context"
	"fmt"

	"courier/bus"
	"courier/schemas"
)

// Publisher publishes runs to the log. It skips the events that the log has already, because the
// deduplication window of NATS is shorter than the time between two imports of the same file.
type Publisher struct {
	Imported int // runs with at least one new event
	Existing int // runs of which the log has all events
	Events   int // new events

	bus  *bus.Bus
	jobs map[string]*loggedJob
}

// loggedJob holds the last events of a job in the log. The events of a run are published in order,
// so the log also has all earlier ones.
type loggedJob struct {
	run, ended uint32 // last run that started, and last run that ended
	epoch      uint32 // last epoch of run
}

// NewPublisher reads the last event of each kind of each job from the log. Without a bus it assumes
// an empty log, and only Plan may be called.
func NewPublisher(ctx context.Context, b *bus.Bus) (*Publisher, error) {
	p := &Publisher{bus: b, jobs: map[string]*loggedJob{}}
	if b == nil {
		return p, nil
	}
	// Read would wait for an absent stream.
	if _, err := b.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	var subjects []string
	for _, kind := range []string{
		schemas.EventStarted,
		schemas.EventEpoch,
		schemas.EventFinished,
		schemas.EventFailed,
		schemas.EventCancelled,
	} {
		subjects = append(subjects, schemas.JobSubject("*", kind))
	}
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: subjects, LastPerSubject: true}
	return p, b.Read(ctx, o, func(r bus.Record) error {
		p.add(r.Event)
		return nil
	})
}

func (p *Publisher) add(e schemas.Event) {
	job := func(id string) *loggedJob {
		if p.jobs[id] == nil {
			p.jobs[id] = &loggedJob{}
		}
		return p.jobs[id]
	}
	switch e := e.(type) {
	case *schemas.Started:
		j := job(e.JobID)
		if e.Run > j.run {
			j.run, j.epoch = e.Run, 0
		}
	case *schemas.Epoch:
		j := job(e.JobID)
		if e.Run > j.run || e.Run == j.run && e.Epoch > j.epoch {
			j.run, j.epoch = e.Run, e.Epoch
		}
	case *schemas.Ended:
		j := job(e.JobID)
		j.ended = max(j.ended, e.Run)
	}
}

// has reports whether the log has the whole run.
func (p *Publisher) has(r *PastRun) bool {
	return p.jobs[r.JobID] != nil && p.jobs[r.JobID].ended >= r.Number
}

// missing returns the events of a run that the log does not have.
func (p *Publisher) missing(r *PastRun) []schemas.Event {
	var all []schemas.Event
	for _, e := range r.Events() {
		if !p.hasEvent(e) {
			all = append(all, e)
		}
	}
	return all
}

func (p *Publisher) hasEvent(e schemas.Event) bool {
	switch e := e.(type) {
	case *schemas.Started:
		j := p.jobs[e.JobID]
		return j != nil && j.run >= e.Run
	case *schemas.Epoch:
		j := p.jobs[e.JobID]
		return j != nil && (j.run > e.Run || j.run == e.Run && j.epoch >= e.Epoch)
	case *schemas.Ended:
		j := p.jobs[e.JobID]
		return j != nil && j.ended >= e.Run
	}
	return false
}

// Plan counts what Publish would publish.
func (p *Publisher) Plan(runs []*PastRun) {
	for _, r := range runs {
		if p.has(r) {
			p.Existing++
			continue
		}
		p.Imported++
		p.Events += len(p.missing(r))
	}
}

// Publish publishes the events of the runs in order. It calls progress before each run with the
// number of runs up to it. After an error the counts cover the completed runs.
func (p *Publisher) Publish(ctx context.Context, runs []*PastRun, progress func(runs int)) error {
	for i, r := range runs {
		progress(i + 1)
		if p.has(r) {
			p.Existing++
			continue
		}
		for _, e := range p.missing(r) {
			if _, err := p.bus.Publish(ctx, e); err != nil {
				return err
			}
			p.Events++
		}
		p.Imported++
	}
	return nil
}
