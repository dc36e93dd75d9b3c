package advisor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

// A job that is not in memory keeps its owner, and nobody else can start it.
func TestOwnerInLog(t *testing.T) {
	b := bustest.New(t)
	a := New(b, Options{}, slog.New(slog.DiscardHandler), nil) // it does not run, so its memory is empty
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := func(job, user string) *schemas.Started {
		e := &schemas.Started{
			Setting: schemas.Setting{
				Model:     "m",
				BatchSize: 4,
				CPUs:      1,
				Epochs:    2,
				Nodes:     []string{"node-a"},
			},
			NodeCores: 2,
			User:      user,
		}
		e.JobStamp = schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: schemas.StartedID(job, 1), At: time.Now().UTC()},
			JobID: job,
			Run:   1,
		}
		return e
	}
	if _, err := b.Publish(ctx, begin("old", "ada")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job, user string
		known     bool
	}{{"old", "ada", true}, {"new", "", false}} {
		if user, known, err := a.ownerInLog(ctx, c.job); err != nil || user != c.user ||
			known != c.known {
			t.Errorf("ownerInLog(%s) = %q, %t, %v, want %q, %t", c.job, user, known, err, c.user,
				c.known)
		}
	}
	if _, err := a.personEvent(ctx, "bob", begin("old", "")); schemas.AsError(err).Code != schemas.CodeForbidden {
		t.Errorf("start of ada's job by bob = %v, want forbidden", err)
	}
}
