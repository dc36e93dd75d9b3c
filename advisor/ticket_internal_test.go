package advisor

import (
	"context"
	"errors"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// The next admission waits for the previous one while that may still be recorded, and for one that
// is in the log but not read yet. A ticket of a crashed advisor does not block it.
func TestLastAdmission_WaitsWhileItMayBeRecorded(t *testing.T) {
	for _, c := range []struct {
		name     string
		seen     time.Duration // before now; 0: now
		recorded bool
		want     error
	}{
		{"not yet recorded", 0, false, schemas.ErrUnavailable},
		{"not yet recorded, and seen before", schemas.SubmitTimeout / 2, false, schemas.ErrUnavailable},
		{"recorded and not read", time.Hour, true, schemas.ErrUnavailable},
		{"never recorded", time.Hour, false, nil},
		{"just never recorded", schemas.SubmitTimeout, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			ticket := schemas.Ticket{JobID: "nightly", Verdict: schemas.Admitted}
			if err := b.TakeTicket(within(t), ticket, 0); err != nil {
				t.Fatal(err)
			}
			if c.recorded {
				record(t, b)
			}
			ctx := within(t)
			if c.want != nil { // it waits for an admission that never arrives
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			a := advisorBehindLog(t, b, Options{})
			if _, _, err := a.readTicket(ctx); err != nil {
				t.Fatal(err)
			}
			a.ticket.at = a.ticket.at.Add(-c.seen)
			_, err := a.lastAdmission(ctx)
			if !errors.Is(err, c.want) {
				t.Errorf("lastAdmission = %v, want %v", err, c.want)
			}
		})
	}
}

// record submits the nightly job through another advisor.
func record(t *testing.T, b *bus.Bus) {
	t.Helper()
	if _, err := advisorBehindLog(t, b, Options{}).submit(within(t), nightly(3)); err != nil {
		t.Fatal(err)
	}
}
