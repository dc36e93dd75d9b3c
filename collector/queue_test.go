package collector_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/schemas"
)

// hold answers every submit with a verdict, and counts the cancels asked for.
func hold(t *testing.T, b *bus.Bus, v schemas.Verdict, cancelled chan<- string) {
	t.Helper()
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			a := adviceFor(q)
			a.Message = string(v) + ", as it would break the promise to old"
			a.Admission = &schemas.Admission{Policy: schemas.AdmissionQueue, Verdict: v, Breaks: []string{"old"}, Position: 1}
			return a, nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			return &schemas.JobStatus{JobID: q.JobID}, nil
		}),
		bus.Handle(schemas.SubjectJobCancel, func(_ context.Context, q *schemas.JobCancelRequest) (any, error) {
			cancelled <- q.JobID
			return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateCancelled}, nil
		}),
	}})
}

func TestRunJob_DoesNotStartWhatIsRefused(t *testing.T) {
	b := bustest.New(t)
	hold(t, b, schemas.Refused, nil)
	o := options(t, trainingCommand("epochs", "3"))
	stderr := newBuffer()
	o.Connect, o.Stderr = over(b), stderr
	got, err := collector.RunJob(t.Context(), o, quiet)
	if !errors.Is(err, schemas.ErrConflict) || !strings.Contains(err.Error(), "break the promise to old") {
		t.Errorf("RunJob() of a refused job = %v, want conflict and its reason", err)
	}
	if !got.Started.IsZero() {
		t.Errorf("the refused job was started at %s", got.Started)
	}
}

func TestRunJob_WaitsForItsTurn(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(t *testing.T, b *bus.Bus, end context.CancelFunc) // what ends the waiting
		want string                                                 // in the error; empty: the job runs
	}{
		{"admitted", func(t *testing.T, b *bus.Bus, _ context.CancelFunc) {
			a := adviceFor(&schemas.JobRequest{JobID: "held", Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 3})
			a.EventID = schemas.AdmittedID("held")
			publishTo(t, b, a)
		}, ""},
		{"kept, then admitted", func(t *testing.T, b *bus.Bus, _ context.CancelFunc) {
			a := adviceFor(&schemas.JobRequest{JobID: "held", Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 3})
			keep := *a
			keep.EventID, keep.Action = "held/0/keep", schemas.ActionKeep
			publishTo(t, b, &keep)
			a.EventID = schemas.AdmittedID("held")
			publishTo(t, b, a)
		}, ""},
		{"cancelled", func(t *testing.T, b *bus.Bus, _ context.CancelFunc) {
			e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: "not needed"}
			e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: "held/0/cancelled", At: time.Now().UTC()}, JobID: "held"}
			publishTo(t, b, e)
		}, "cancelled while it waited: not needed"},
		{"given up", func(_ *testing.T, _ *bus.Bus, end context.CancelFunc) { end() }, "cancelled while it waited: courier run was told to end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			cancelled := make(chan string, 1)
			hold(t, b, schemas.Queued, cancelled)
			o := options(t, trainingCommand("epochs", "3"))
			stderr := newBuffer()
			o.Request.JobID, o.Connect, o.Stderr = "held", over(b), stderr
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var got collector.JobResult
			done := make(chan error, 1)
			go func() {
				var err error
				got, err = collector.RunJob(ctx, o, quiet)
				done <- err
			}()
			stderr.await(t, "waits for its turn, number 1")
			c.ends(t, b, end)
			err := <-done
			if c.want == "" {
				if err != nil || got.Setting.BatchSize != 16 || len(got.Epochs) != 3 {
					t.Errorf("RunJob() = %+v, %v, want a run with the batch size that it was admitted with", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !got.Started.IsZero() {
				t.Errorf("RunJob() = started %s, %v, want %q and no start", got.Started, err, c.want)
			}
			if c.name == "given up" && <-cancelled != "held" {
				t.Error("whoever gives up does not cancel")
			}
		})
	}
}

func publishTo(t *testing.T, b *bus.Bus, e schemas.Event) {
	t.Helper()
	if _, err := b.Publish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}
