package advisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// advisorBehindLog returns an advisor that has not read the event log, like an advisor that lags
// behind or has dropped old jobs from memory.
func advisorBehindLog(t *testing.T, b *bus.Bus, o Options) *Advisor {
	t.Helper()
	return New(b, o, slog.New(slog.DiscardHandler), nil)
}

func nightly(epochs int) *schemas.JobRequest {
	return &schemas.JobRequest{
		JobID: "nightly", Model: "m", CPUs: schemas.CPUs{1}, Epochs: epochs, User: "ada",
		SLO: schemas.Duration(time.Hour),
	}
}

// The same request gets its first advice, and a different one a conflict. This also holds if memory
// has dropped the job or its request, or has not read it yet.
func TestSubmit_ReadsTheLogIfTheJobIsNotInMemory(t *testing.T) {
	for _, policy := range []string{schemas.AdmissionAdvise, schemas.AdmissionQueue} {
		for _, memory := range []struct {
			name          string
			recordOutcome func(*cluster.Cluster)
		}{
			{"no job", func(*cluster.Cluster) {}},
			{"an ended job without its request", func(c *cluster.Cluster) { finish(c, "nightly") }},
			{"a packed job, which has lost its answer", func(c *cluster.Cluster) {
				e := &schemas.Submitted{Request: nightly(3).WithDefaults()}
				e.JobStamp = stampOf("nightly", "nightly/submitted", 0)
				c.Apply(e, 1, e.At)
				finish(c, "nightly")
				for i := 0; c.Job("nightly") != nil; i++ {
					finish(c, fmt.Sprint("job-", i))
				}
			}},
		} {
			t.Run(policy+", "+memory.name, func(t *testing.T) {
				b := bustest.New(t)
				o := Options{Policy: Policy{Admission: policy}}
				if _, err := advisorBehindLog(t, b, o).submit(within(t), nightly(3)); err != nil {
					t.Fatal(err)
				}
				first := recordedAdvice(t, b)
				a := advisorBehindLog(t, b, o)
				memory.recordOutcome(a.cluster)
				reply, err := a.submit(within(t), nightly(3))
				if err != nil {
					t.Fatal(err)
				}
				if got := reply.(*schemas.Advice); !got.At.Equal(first.At) || got.EventID != first.EventID {
					t.Errorf("advice %s of %s, want the advice of the first request, at %s",
						got.EventID, got.At, first.At)
				}
				_, err = a.submit(within(t), nightly(4))
				if !errors.Is(err, schemas.ErrConflict) {
					t.Errorf("submit with another body = %v, want conflict", err)
				}
			})
		}
	}
}

// finish applies the end of a job.
func finish(c *cluster.Cluster, id string) {
	e := &schemas.Ended{Outcome: schemas.EventFinished, Setting: settingOn(1)}
	e.JobStamp = stampOf(id, schemas.EndedID(id, 1, schemas.EventFinished), 1)
	c.Apply(e, 1, e.At)
}

func recordedAdvice(t *testing.T, b *bus.Bus) *schemas.Advice {
	t.Helper()
	subject := schemas.JobSubject("nightly", schemas.EventSubmitted)
	records, err := b.Last(within(t), schemas.StreamJob, subject)
	if err != nil || len(records) != 1 {
		t.Fatalf("found %d submissions, want 1 (%v)", len(records), err)
	}
	return &records[0].Event.(*schemas.Submitted).Advice
}

// If the event log does not answer, the reply is an error.
func TestSubmit_ReturnsUnavailableWithoutTheLog(t *testing.T) {
	s := bustest.NewServer(t)
	a := advisorBehindLog(t, s.Connect(t), Options{})
	finish(a.cluster, "nightly")
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := a.submit(ctx, nightly(3)); !errors.Is(err, schemas.ErrUnavailable) {
		t.Errorf("submit = %v, want unavailable", err)
	}
}

// A job that is only in the log has a status, and only its owner may cancel it.
func TestStatus_ReadsTheLog(t *testing.T) {
	b := bustest.New(t)
	if _, err := advisorBehindLog(t, b, Options{}).submit(within(t), nightly(3)); err != nil {
		t.Fatal(err)
	}
	a := advisorBehindLog(t, b, Options{})
	a.applied = math.MaxUint64 // as if it had applied everything and dropped the job
	reply, err := a.status(within(t), &schemas.JobStatusRequest{JobID: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := reply.(schemas.JobStatus)
	if !ok || s.State != schemas.StateSubmitted || s.User != "ada" || s.Epochs != 3 {
		t.Errorf("got status %+v, want submitted by ada", reply)
	}
	cancel := &schemas.JobCancelRequest{JobID: "nightly"}
	if _, err := a.personCancel(within(t), "bob", cancel); !errors.Is(err, schemas.ErrForbidden) {
		t.Errorf("cancel of ada's job by bob = %v, want forbidden", err)
	}
	for range 2 { // a repetition has no effect
		reply, err = a.personCancel(within(t), "ada", cancel)
		if s, ok := reply.(schemas.JobStatus); err != nil || !ok || s.State != schemas.StateCancelled {
			t.Errorf("cancel by the owner = %+v, %v, want cancelled", reply, err)
		}
	}
	unknown := &schemas.JobStatusRequest{JobID: "unknown"}
	if _, err := a.status(within(t), unknown); !errors.Is(err, schemas.ErrNotFound) {
		t.Errorf("status of an unknown job = %v, want not_found", err)
	}
}
