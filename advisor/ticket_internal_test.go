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

// The next admission waits for the one before it while that may still be recorded, and
// for one that the log has although this advisor has not read it. A ticket whose advisor
// died does not stop it.
func TestLastAdmission_IsWaitedForWhileItMayBeRecorded(t *testing.T) {
	for _, c := range []struct {
		name     string
		at       time.Duration // of the ticket, from now
		recorded bool
		want     error
	}{
		{"not yet recorded", time.Hour, false, schemas.ErrUnavailable},
		{"recorded and not read", -time.Hour, true, schemas.ErrUnavailable},
		{"never recorded", -time.Hour, false, nil},
		{"just never recorded", -schemas.SubmitTimeout, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			ticket := schemas.Ticket{JobID: "nightly", Verdict: schemas.Admitted, At: time.Now().Add(c.at)}
			if err := b.TakeTicket(inTime(t), ticket, 0); err != nil {
				t.Fatal(err)
			}
			if c.recorded {
				record(t, b)
			}
			ctx := inTime(t)
			if c.want != nil { // it waits for what does not come
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			_, err := asleep(t, b, Options{}).lastAdmission(ctx)
			if !errors.Is(err, c.want) {
				t.Errorf("lastAdmission = %v, want %v", err, c.want)
			}
		})
	}
}

// record submits the nightly job by another advisor.
func record(t *testing.T, b *bus.Bus) {
	t.Helper()
	if _, err := asleep(t, b, Options{}).submit(inTime(t), nightly(3)); err != nil {
		t.Fatal(err)
	}
}
