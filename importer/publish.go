package importer

import (
	"context"
	"fmt"
	"slices"

	"courier/bus"
	"courier/schemas"
)

// Publisher publishes runs to the log. It skips the events that the log has already, because the
// deduplication window of NATS is shorter than the time between two imports of the same file.
type Publisher struct {
	Published

	bus  *bus.Bus
	jobs map[string]loggedJob
}

// Published counts what a Publisher has published.
type Published struct {
	Imported int `json:"imported"`      // runs with at least one new event
	Existing int `json:"already_there"` // runs of which the log has all events
	Events   int `json:"events"`        // new events
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
	p := &Publisher{bus: b, jobs: map[string]loggedJob{}}
	if b == nil {
		return p, nil
	}
	// Read would wait for an absent stream.
	if _, err := b.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	o := bus.FollowOptions{Stream: schemas.StreamJob, LastPerSubject: true}
	for _, kind := range runEvents {
		o.Subjects = append(o.Subjects, schemas.JobSubject("*", kind))
	}
	return p, b.Read(ctx, o, func(r bus.Record) error {
		p.add(r.Event)
		return nil
	})
}

func (p *Publisher) add(e schemas.Event) {
	id, run, epoch := runOf(e)
	j := p.jobs[id]
	if _, isEnd := e.(*schemas.Ended); isEnd {
		j.ended = max(j.ended, run)
	} else if run > j.run || run == j.run && epoch > j.epoch {
		j.run, j.epoch = run, epoch
	}
	p.jobs[id] = j
}

// runOf returns the job and the run of an event of a run, and its epoch; 0: none.
func runOf(e schemas.Event) (job string, run, epoch uint32) {
	switch e := e.(type) {
	case *schemas.Started:
		return e.JobID, e.Run, 0
	case *schemas.Epoch:
		return e.JobID, e.Run, e.Epoch
	case *schemas.Ended:
		return e.JobID, e.Run, 0
	}
	return "", 0, 0
}

// missing returns the events of a run that the log does not have. With the end of a run it has all.
func (p *Publisher) missing(r *PastRun) []schemas.Event {
	if p.jobs[r.JobID].ended >= r.Number {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Events()), func(e schemas.Event) bool {
		id, run, epoch := runOf(e)
		j := p.jobs[id]
		if _, isEnd := e.(*schemas.Ended); isEnd {
			return j.ended >= run
		}
		return j.run > run || j.run == run && j.epoch >= epoch
	})
}

// Plan counts what Publish would publish.
func (p *Publisher) Plan(runs []*PastRun) {
	for _, r := range runs {
		events := p.missing(r)
		p.Events += len(events)
		p.count(events)
	}
}

func (p *Publisher) count(events []schemas.Event) {
	if len(events) == 0 {
		p.Existing++
	} else {
		p.Imported++
	}
}

// Publish publishes the events of the runs in order. It calls progress before each run with the
// number of runs up to it. After an error the counts cover the completed runs.
func (p *Publisher) Publish(ctx context.Context, runs []*PastRun, progress func(runs int)) error {
	for i, r := range runs {
		progress(i + 1)
		events := p.missing(r)
		for _, e := range events {
			if _, err := p.bus.Publish(ctx, e); err != nil {
				return err
			}
			p.Events++
		}
		p.count(events)
	}
	return nil
}
