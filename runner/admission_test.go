package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

// serveVerdict answers every submission with a verdict, and reports requests to cancel.
func serveVerdict(t *testing.T, b *bus.Bus, v schemas.Verdict, requests chan<- string) {
	t.Helper()
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			a := adviceFor(q)
			a.Message = string(v) + ", because job old would miss its SLO"
			a.Admission = &schemas.Admission{
				Policy:   schemas.AdmissionQueue,
				Verdict:  v,
				Breaks:   []string{"old"},
				Position: 1,
			}
			return a, nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			return &schemas.JobStatus{JobID: q.JobID}, nil
		}),
		bus.Handle(schemas.SubjectJobCancel, func(_ context.Context, q *schemas.JobCancelRequest) (any, error) {
			requests <- q.JobID
			return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateCancelled}, nil
		}),
	}})
}

func TestRun_DoesNotStartARefusedJob(t *testing.T) {
	b := bustest.New(t)
	serveVerdict(t, b, schemas.Refused, nil)
	o := options(t, trainingCommand("epochs", "3"))
	stderr := bustest.NewBuffer()
	o.Connect, o.Stderr = over(b), stderr
	got, err := runner.Run(t.Context(), o, quiet)
	if !errors.Is(err, schemas.ErrConflict) ||
		!strings.Contains(err.Error(), "job old would miss its SLO") {
		t.Errorf("Run() of a refused job = %v, want a conflict with the reason", err)
	}
	if !got.Started.IsZero() {
		t.Errorf("the refused job was started at %s", got.Started)
	}
}

func TestRun_WaitsForAdmission(t *testing.T) {
	for _, c := range []struct {
		name string
		// ends ends the waiting.
		ends func(t *testing.T, b *bus.Bus, end context.CancelFunc)
		want string // contained in the error; empty: the job runs
	}{
		{"admitted", func(t *testing.T, b *bus.Bus, _ context.CancelFunc) {
			publishTo(t, b, schemas.NewJobAdmitted(startAdvice()))
		}, ""},
		{"cancelled", func(t *testing.T, b *bus.Bus, _ context.CancelFunc) {
			publishTo(t, b, cancelled("held", 0, time.Now(), "not needed"))
		}, "cancelled in the queue: not needed"},
		{
			"stopped",
			func(_ *testing.T, _ *bus.Bus, end context.CancelFunc) { end() },
			"cancelled in the queue: courier run was stopped",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			requests := make(chan string, 1)
			serveVerdict(t, b, schemas.Queued, requests)
			o := options(t, trainingCommand("epochs", "3"))
			stderr := bustest.NewBuffer()
			o.Request.JobID, o.Connect, o.Stderr = "held", over(b), stderr
			ctx, end := context.WithCancel(t.Context())
			defer end()
			done := attempt(ctx, o)
			stderr.Await(t, "is queued at position 1")
			c.ends(t, b, end)
			got := <-done
			err := got.err
			if c.want == "" {
				if err != nil || got.Setting.BatchSize != 16 || len(got.Epochs) != 3 {
					t.Errorf("Run() = %+v, %v, want a run with the batch size of the admission", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !got.Started.IsZero() {
				t.Errorf("Run() = started %s, %v, want %q and no start", got.Started, err, c.want)
			}
			if c.name == "stopped" && (len(requests) != 1 || <-requests != "held") {
				t.Error("the stopped run has not cancelled its job")
			}
		})
	}
}

// startAdvice returns the advice of the admission of the job held.
func startAdvice() *schemas.Advice {
	return adviceFor(&schemas.JobRequest{
		JobID:      "held",
		Model:      "digits-mlp",
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{16},
		Epochs:     3,
	})
}
