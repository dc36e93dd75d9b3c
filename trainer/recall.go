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

// recall folds the past of the window: from the database where there is one, the rest
// from the log. A database may have some tables of its last batch and not others,
// so the log is read again from one batch before its end; copies change nothing.
func (t *Trainer) recall(ctx context.Context) (*Past, error) {
	past, since := NewPast(), time.Time{}
	if t.o.Window > 0 {
		since = time.Now().Add(-t.o.Window)
	}
	if h := t.history(); h != nil {
		err := h.Events(ctx, since, func(e schemas.Event) error {
			past.Add(e, e.Stamped().Sequence)
			return nil
		})
		if err != nil {
			t.log.Warn("examples come from the log: the database does not tell", "error", err)
			past = NewPast()
		}
	}
	from := uint64(0)
	if past.last > schemas.MaxBatchMessages {
		from = past.last - schemas.MaxBatchMessages
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
	return past, nil
}
