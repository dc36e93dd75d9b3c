package trainer

import (
	"context"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// History tells the job events that a database holds, in the order of their
// sequences: started, epoch, ended.
type History interface {
	Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error
}

// jobEvents are those that examples are made of.
func jobEvents() []string {
	var subjects []string
	for _, e := range []string{schemas.EventStarted, schemas.EventEpoch, schemas.EventFinished, schemas.EventFailed, schemas.EventCancelled, schemas.EventLost} {
		subjects = append(subjects, schemas.JobSubject("*", e))
	}
	return subjects
}

// recall folds the past of the window. What was folded before a fit is kept for the
// next, which reads only what the log has got since: to read a million epochs takes
// as long as to fit them. A past with a beginning that moves is folded anew.
func (t *Trainer) recall(ctx context.Context) (*Past, error) {
	past, since := t.past, time.Time{}
	if t.o.Window > 0 {
		past, since = nil, time.Now().Add(-t.o.Window)
	}
	from := uint64(0)
	if past == nil {
		past = t.told(ctx, since)
		// A database may have some tables of its last batch and not others, so the log is
		// read again from one batch before its end; copies change nothing.
		from = max(past.last, schemas.MaxBatchMessages) - schemas.MaxBatchMessages
	} else {
		from = past.last + 1
	}
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: jobEvents(), From: from}
	err := t.bus.Read(ctx, o, func(r bus.Record) error {
		if !r.Event.Stamped().At.Before(since) { // as the database does
			past.Add(r.Event, r.Sequence)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("recall examples: %w", err)
	}
	if t.o.Window == 0 {
		t.past = past
	}
	return past, nil
}

// told is the past as the database tells it, if there is one.
func (t *Trainer) told(ctx context.Context, since time.Time) *Past {
	past, h := NewPast(), t.history()
	if h == nil {
		return past
	}
	err := h.Events(ctx, since, func(e schemas.Event) error {
		past.Add(e, e.Stamped().Sequence)
		return nil
	})
	if err != nil {
		t.log.Warn("examples come from the log: the database does not tell", "error", err)
		return NewPast()
	}
	return past
}
