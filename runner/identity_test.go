package runner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

// Of two runners that start the same job at once, one is refused before its command starts.
func TestRun_RefusesASecondRunnerOfTheSameRun(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0) // neither has started: both would be run 1
	results := make(chan runner.Result, 2)
	failures := make(chan error, 2)
	for range 2 {
		go func() {
			o := options(t, trainingCommand("percentages", "3"))
			o.Request.JobID, o.Connect = "twice", over(b)
			got, err := runner.Run(t.Context(), o, quiet)
			results <- got
			failures <- err
		}()
	}
	a, c := <-results, <-results
	errA, errC := <-failures, <-failures
	if errA == nil {
		errA, errC = errC, errA
	}
	if errC != nil || !errors.Is(errA, schemas.ErrConflict) {
		t.Fatalf("errors %v and %v, want one conflict", errA, errC)
	}
	if len(a.Epochs)+len(c.Epochs) != 3 {
		t.Errorf("%d and %d epochs, want 3 of one run", len(a.Epochs), len(c.Epochs))
	}
	bustest.Stored(t, b, schemas.JobSubject("twice", schemas.EventEpoch), 3)
	bustest.Stored(t, b, schemas.JobSubject("twice", schemas.EventFinished), 1)
	failed, err := b.Last(t.Context(), schemas.StreamJob, schemas.JobSubject("twice", schemas.EventFailed))
	if err != nil || len(failed) > 0 {
		t.Errorf("events of a failure: %v, %v, want none: the run is the other runner's", failed, err)
	}
}

// A job that has ended by itself or by a person is not started again under its ID: its deadline is over.
func TestRun_RefusesAnIDThatHasEnded(t *testing.T) {
	for state, want := range map[schemas.State]uint32{ // run; 0: refused
		schemas.StateFinished: 0, schemas.StateCancelled: 0, schemas.StateFailed: 3, schemas.StateLost: 3,
	} {
		t.Run(string(state), func(t *testing.T) {
			b := bustest.New(t)
			serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
				bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
					return adviceFor(q), nil
				}),
				bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
					return &schemas.JobStatus{JobID: q.JobID, State: state, Run: 2}, nil
				}),
			}})
			o := options(t, trainingCommand("percentages", "1"))
			o.Request.JobID, o.Connect = "again", over(b)
			got, err := runner.Run(t.Context(), o, quiet)
			if errors.Is(err, schemas.ErrConflict) != (want == 0) || want > 0 && (err != nil || got.Run != want) {
				t.Errorf("run %d, %v, want run %d (0: refused)", got.Run, err, want)
			}
		})
	}
}

// A job that sends heartbeats is not started a second time. A job whose runner was killed is.
func TestRun_AsksWhetherARunningJobIsAlive(t *testing.T) {
	for _, c := range []struct {
		name  string
		later schemas.JobStatus // after the first answer, which is "running"
		want  uint32            // run; 0: refused
	}{
		{"alive", schemas.JobStatus{State: schemas.StateRunning, Run: 4}, 0},
		{"failed meanwhile", schemas.JobStatus{State: schemas.StateFailed, Run: 4}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			var asked atomic.Int32
			begin := time.Now().UTC()
			serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
				bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
					return adviceFor(q), nil
				}),
				bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
					s := schemas.JobStatus{State: schemas.StateRunning, Run: 4, Nodes: []string{"node-b"}}
					if n := asked.Add(1); n > 1 {
						s = c.later
					}
					s.JobID, s.LastSeenAt = q.JobID, new(begin.Add(time.Duration(asked.Load())*time.Second))
					return &s, nil
				}),
			}})
			o := options(t, trainingCommand("percentages", "1"))
			o.Request.JobID, o.Connect = "again", over(b)
			got, err := runner.Run(t.Context(), o, quiet)
			switch {
			case c.want == 0 && (!errors.Is(err, schemas.ErrConflict) || !got.Started.IsZero()):
				t.Errorf("Run = %+v, %v, want a conflict and no command", got, err)
			case c.want > 0 && (err != nil || got.Run != c.want):
				t.Errorf("Run = run %d, %v, want run %d", got.Run, err, c.want)
			}
		})
	}
}
