package trainer

import (
	"context"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// History reads the job events that a database holds, in the order of their sequences:
// started, epoch, ended. They are complete up to some place in the log.
type History interface {
	Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error
}

// jobEvents are those that examples are made of.
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

// databaseWait is how long a start waits for a database that has what the log has dropped; the
// database of `courier all` starts beside the trainer.
const (
	databaseWait = time.Minute
	databasePoll = 100 * time.Millisecond
)

// passage is what the reader of the log hands over: an event, or how far it has come.
type passage struct {
	record   bus.Record // of an event, if Event is not nil
	position uint64     // sequence up to which the log was read; 0: unchanged
	live     bool       // all that was stored at the start was read
}

// readJobs hands over the events of jobs, first from the database, then from the log, one at a
// time, until ctx ends.
func (t *Trainer) readJobs(ctx context.Context, out chan<- passage) error {
	hand := func(p passage) error {
		select {
		case out <- p:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	since := t.o.horizon(time.Now())
	last := t.readDatabase(ctx, since, hand)
	stored, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	o := bus.FollowOptions{
		Stream:   schemas.StreamJob,
		Subjects: jobEvents(),
		From:     last, // again: a message may hold several events
		Progress: func(sequence uint64) { _ = hand(passage{position: sequence}) },
		CaughtUp: func() { _ = hand(passage{position: stored, live: true}) },
	}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if r.Event.Stamped().At.Before(since) { // the database leaves it out as well
			return nil
		}
		_ = hand(passage{record: r}) // if ctx has ended, Follow notices
		return nil
	})
}

// readDatabase hands over the events of the database, if there is one, and returns the sequence
// of the last.
//
// The database does not know when an event was stored. It was not before any event with a lower
// sequence happened: that tells imported runs of long ago from news.
func (t *Trainer) readDatabase(
	ctx context.Context, since time.Time, hand func(passage) error,
) (last uint64) {
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
		return hand(passage{
			record: bus.Record{Event: e, Sequence: stamp.Sequence, StoredAt: stored},
		})
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		t.log.Warn("history not read to its end, the log completes it", "events", events, "error",
			err)
	default:
		t.log.Info("history read", "events", events, "seconds", time.Since(begin).Seconds())
	}
	return last
}

// database returns the history of the database. If the log has dropped messages, and a database
// may come, it is waited for.
func (t *Trainer) database(ctx context.Context) History {
	if h := t.history(); h != nil || !t.mayHaveHistory {
		return h
	}
	first, _, err := t.bus.Bounds(ctx, schemas.StreamJob)
	if err != nil || first <= 1 {
		return nil // the log has it all
	}
	end, poll := time.NewTimer(databaseWait), time.NewTicker(databasePoll)
	defer end.Stop()
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end.C:
			t.log.Warn("no database yet: examples come from the log alone", "first_sequence", first)
			return nil
		case <-poll.C:
			if h := t.history(); h != nil {
				return h
			}
		}
	}
}

// lesson is what a past teaches about one target. Nobody changes it.
type lesson struct {
	examples []Example
	last     uint64         // sequence of the last event of the past
	refused  map[string]int // left out, by reason
}

// view asks the owner of the past for a lesson.
type view struct {
	target string
	at     uint64 // sequence up to which the log must have been read
	reply  chan lesson
}

// recall returns what the past teaches about a target once the log was read up to a sequence.
func (t *Trainer) recall(ctx context.Context, target string, at uint64) (lesson, error) {
	v := view{target, at, make(chan lesson, 1)}
	select {
	case t.views <- v:
	case <-ctx.Done():
		return lesson{}, fmt.Errorf("recall examples: %w", ctx.Err())
	}
	select {
	case l := <-v.reply:
		return l, nil
	case <-ctx.Done():
		return lesson{}, fmt.Errorf("recall examples: %w", ctx.Err())
	}
}

// answer answers the views for which the log was read far enough. What happened before the
// horizon is dropped first.
func (w *watcher) answer(horizon time.Time) {
	if !w.live || len(w.views) == 0 {
		return
	}
	w.past.Expire(horizon)
	waiting := w.views[:0]
	for _, v := range w.views {
		if v.at > w.position {
			waiting = append(waiting, v)
			continue
		}
		examples := w.past.Examples(v.target)
		v.reply <- lesson{examples, w.past.last, w.past.Refused()}
	}
	w.views = waiting
}
