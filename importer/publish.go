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
	Published

	bus    *bus.Bus
	logged map[string]uint64 // position of the last event of each job
}

// Published counts what a Publisher has published.
type Published struct {
	Imported int `json:"imported"`      // runs with at least one new event
	Existing int `json:"already_there"` // runs of which the log has all events
	Events   int `json:"events"`        // new events
}

// NewPublisher reads the last event of each kind of each job from the log. Without a bus it assumes
// an empty log, and Publish may only count.
func NewPublisher(ctx context.Context, b *bus.Bus) (*Publisher, error) {
	p := &Publisher{bus: b, logged: map[string]uint64{}}
	if b == nil {
		return p, nil
	}
	// Read would wait for an absent stream.
	if _, err := b.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	o := bus.FollowOptions{Stream: schemas.StreamJob, LastPerSubject: true}
	for _, kind := range []string{
		schemas.EventStarted, schemas.EventEpoch, schemas.EventFinished, schemas.EventFailed, schemas.EventCancelled,
	} {
		o.Subjects = append(o.Subjects, schemas.JobSubject("*", kind))
	}
	return p, b.Read(ctx, o, func(r bus.Record) error {
		job, at := positionOf(r.Event)
		p.logged[job] = max(p.logged[job], at)
		return nil
	})
}

// positionOf returns the job of an event of a run, and its position: the number of the run, and the epoch.
// The events of a job are published in the order of their positions, so that the log has all up to the last.
func positionOf(e schemas.Event) (job string, position uint64) {
	const run = 1 << 32
	switch e := e.(type) {
	case *schemas.Started:
		return e.JobID, uint64(e.Run) * run
	case *schemas.Epoch:
		return e.JobID, uint64(e.Run)*run + uint64(e.Epoch)
	case *schemas.Ended:
		return e.JobID, uint64(e.Run)*run + run - 1
	}
	return "", 0
}

// Publish publishes the events of the runs that the log does not have, in order; with isDry it only counts
// them. It calls progress before each run with the number of runs up to it. After an error the counts cover
// the completed runs.
func (p *Publisher) Publish(ctx context.Context, runs []*PastRun, isDry bool, progress func(runs int)) error {
	for i, r := range runs {
		progress(i + 1)
		before := p.Events
		for _, e := range r.Events() {
			if job, at := positionOf(e); at <= p.logged[job] {
				continue
			}
			if !isDry {
				if _, err := p.bus.Publish(ctx, e); err != nil {
					return err
				}
			}
			p.Events++
		}
		if p.Events == before {
			p.Existing++
		} else {
			p.Imported++
		}
	}
	return nil
}
