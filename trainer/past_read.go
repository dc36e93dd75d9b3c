package trainer

import (
	"context"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// jobEvents returns the subjects of the events that examples are made of.
func jobEvents() []string {
	var subjects []string
	for _, e := range []string{
		schemas.EventStarted, schemas.EventEpoch, schemas.EventFinished, schemas.EventFailed,
		schemas.EventCancelled, schemas.EventLost,
	} {
		subjects = append(subjects, schemas.JobSubject("*", e))
	}
	return subjects
}

// databaseWait is how long the trainer waits at start for the database if the log has dropped
// messages; `courier all` starts both at the same time.
const (
	databaseWait = time.Minute
	databasePoll = 100 * time.Millisecond
)

// logUpdate is what the reader of the log reports: an event, or its position.
type logUpdate struct {
	record   bus.Record // valid if Event is not nil
	position uint64     // sequence up to which the log was read; 0: unchanged
	live     bool       // all events stored at the start have been read
}

// readJobs sends the events of jobs, first from the database, then from the log, until ctx ends.
func (t *Trainer) readJobs(ctx context.Context, out chan<- logUpdate) error {
	send := func(p logUpdate) error {
		select {
		case out <- p:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	since := t.o.horizon(time.Now())
	last := t.readDatabase(ctx, since, send)
	stored, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	o := bus.FollowOptions{
		Stream:   schemas.StreamJob,
		Subjects: jobEvents(),
		From:     last, // inclusive: a message may hold several events
		Progress: func(sequence uint64) { _ = send(logUpdate{position: sequence}) },
		CaughtUp: func() { _ = send(logUpdate{position: stored, live: true}) },
	}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if r.Event.Stamped().At.Before(since) { // as readDatabase does
			return nil
		}
		_ = send(logUpdate{record: r}) // Follow ends with ctx
		return nil
	})
}

// readDatabase sends the events of the database, if there is one, and returns the last sequence.
//
// The database does not store when an event was stored in the log. It was not before the time of
// any event with a lower sequence; this separates imported runs from current ones.
func (t *Trainer) readDatabase(ctx context.Context, since time.Time, send func(logUpdate) error) (last uint64) {
	h := t.database(ctx)
	if h == nil {
		return 0
	}
	begin, events, stored := time.Now(), 0, time.Time{}
	err := h.Events(ctx, since, func(e schemas.Event) error {
		stamp := e.Stamped()
		if stamp.At.After(stored) && !stamp.At.After(begin) {
			stored = stamp.At
		}
		last = max(last, stamp.Sequence)
		events++
		return send(logUpdate{
			record: bus.Record{Event: e, Sequence: stamp.Sequence, StoredAt: stored},
		})
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		t.log.Warn("history read in part, the log supplies the rest",
			"events", events, "error", err)
	default:
		t.log.Info("history read", "events", events, "seconds", time.Since(begin).Seconds())
	}
	return last
}

// database returns the history of the database. If the log has dropped messages and a database is
// configured, it waits for it.
func (t *Trainer) database(ctx context.Context) History {
	if h := t.history(); h != nil || !t.expectsHistory {
		return h
	}
	first, _, err := t.bus.Bounds(ctx, schemas.StreamJob)
	if err != nil || first <= 1 {
		return nil // the log is complete
	}
	poll := time.NewTicker(databasePoll)
	defer poll.Stop()
	for range databaseWait / databasePoll {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			if h := t.history(); h != nil {
				return h
			}
		}
	}
	t.log.Warn("no database: examples come from the log alone", "first_sequence", first)
	return nil
}

// recall returns the examples of a target once the log was read up to a sequence.
func (t *Trainer) recall(ctx context.Context, target string, at uint64) (exampleSet, error) {
	v := exampleRequest{target, at, make(chan exampleSet, 1)}
	return ask(ctx, t.exampleRequests, v, v.reply)
}
