package runner_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

// serveVerdict answers every submission with a verdict, and reports requests to cancel. It answers the
// first request for a status after a heartbeat, which the runner must send although it waits for the answer.
func serveVerdict(t *testing.T, b *bus.Bus, v schemas.Verdict, requests chan<- string) {
	t.Helper()
	heartbeats := make(chan struct{})
	go func() {
		_ = b.Listen(t.Context(), schemas.JobSubject("*", schemas.EventAlive), func(e schemas.Event) {
			if alive := e.(*schemas.Alive); alive.ID() == alive.JobID+"/1/alive/1" {
				t.Error("the first heartbeat names run 1, which has not started: the advisor ignores it")
			}
			select {
			case heartbeats <- struct{}{}:
			default: // nobody waits
			}
		})
	}()
	var asked atomic.Bool
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			a := adviceFor(q)
			a.Message = string(v) + ", because job old would miss its SLO"
			a.Admission = &schemas.Admission{Policy: schemas.AdmissionQueue, Verdict: v, Position: 1}
			a.Admission.Breaks = []string{"old"}
			return a, nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(ctx context.Context, q *schemas.JobStatusRequest) (any, error) {
			if !asked.Swap(true) {
				select {
				case <-heartbeats:
				case <-ctx.Done():
				}
			}
			return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateSubmitted, ReservedSeconds: 60}, nil
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
		{"stopped", func(_ *testing.T, _ *bus.Bus, end context.CancelFunc) {
			end()
		}, "cancelled before its start: courier run was stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			requests := make(chan string, 1)
			serveVerdict(t, b, schemas.Queued, requests)
			o := options(t, trainingCommand("epochs", "3"))
			stderr := bustest.NewBuffer()
			o.Request.JobID, o.Connect, o.Stderr, o.Patience = "held", over(b), stderr, time.Hour
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

// A terminal that is paused while the job waits neither stops its heartbeats nor its start.
func TestRun_WaitsForAdmissionOnAPausedTerminal(t *testing.T) {
	b := bustest.New(t)
	serveVerdict(t, b, schemas.Queued, nil)
	publishTo(t, b, schemas.NewJobAdmitted(startAdvice()))
	terminal, paused := io.Pipe()
	defer terminal.Close() // a writer that waits continues
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.Connect, o.Stderr = "held", over(b), paused
	done := attempt(t.Context(), o)
	bustest.Stored(t, b, schemas.JobSubject("held", schemas.EventStarted), 1)
	terminal.Close()
	if got := <-done; got.err != nil || len(got.Epochs) != 3 {
		t.Errorf("Run() = %+v, want a run of 3 epochs", got)
	}
}

// A job does not start when its CPUs are not reserved any more: its runner was cut off when the job was
// admitted, or the job was submitted long before. It is submitted again if the runner has chosen its ID.
func TestRun_DoesNotStartByALateAdmission(t *testing.T) {
	for name, id := range map[string]string{"queued": "", "queued with an ID": "held", "submitted": "held"} {
		t.Run(name, func(t *testing.T) {
			b := bustest.New(t)
			var mu sync.Mutex
			var submitted, cancelled []string
			serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
				bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
					mu.Lock()
					defer mu.Unlock()
					submitted = append(submitted, q.JobID)
					a := adviceFor(q)
					a.Admission = &schemas.Admission{Policy: schemas.AdmissionQueue, Verdict: schemas.Admitted}
					if len(submitted) == 1 && name != "submitted" {
						a.Admission.Verdict, a.Admission.Position = schemas.Queued, 1
						publishTo(t, b, schemas.NewJobAdmitted(a))
					}
					return a, nil
				}),
				bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
					return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateSubmitted, ReservedSeconds: 1}, nil
				}),
				bus.Handle(schemas.SubjectJobCancel, func(_ context.Context, q *schemas.JobCancelRequest) (any, error) {
					mu.Lock()
					defer mu.Unlock()
					cancelled = append(cancelled, q.JobID)
					return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateCancelled}, nil
				}),
			}})
			o := options(t, trainingCommand("epochs", "3"))
			o.Request.JobID, o.Connect = id, over(b)
			got, err := runner.Run(t.Context(), o, quiet)
			mu.Lock()
			defer mu.Unlock()
			if len(cancelled) != 1 || cancelled[0] != submitted[0] {
				t.Errorf("cancelled %q of %q, want the first job", cancelled, submitted)
			}
			if id != "" {
				if !errors.Is(err, schemas.ErrConflict) || !got.Started.IsZero() {
					t.Errorf("Run() = started %s, %v, want a conflict and no start", got.Started, err)
				}
				return
			}
			if err != nil || len(submitted) != 2 || got.JobID != submitted[1] || len(got.Epochs) != 3 {
				t.Errorf("Run() = %s with %d epochs, %v, want the second of %q",
					got.JobID, len(got.Epochs), err, submitted)
			}
		})
	}
}

// startAdvice returns the advice of the admission of the job held.
func startAdvice() *schemas.Advice {
	q := schemas.JobRequest{JobID: "held", Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 3}
	return adviceFor(&q)
}
