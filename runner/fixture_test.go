package runner_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/runner"
	"courier/schemas"
)

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

// steadyNode is a node whose load never changes.
type steadyNode struct{}

func (steadyNode) Hardware() schemas.Hardware {
	return schemas.Hardware{Cores: 4, CPUModel: "test processor"}
}

func (steadyNode) Load(e *schemas.Epoch) {
	busy, waiting, load := 0.5, 0.125, 3.5
	e.NodeCores = 4
	e.NodeCPURatio, e.NodeIOWaitRatio, e.NodeLoadAverage = &busy, &waiting, &load
}

// request returns a valid request.
func request() schemas.JobRequest {
	return schemas.JobRequest{
		Model:      "digits-mlp",
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{8, 32},
		Epochs:     3,
		SLO:        schemas.Duration(time.Minute),
	}
}

// options returns options for a command on pipes without a bus.
func options(t *testing.T, command []string) runner.Options {
	return runner.Options{
		Request:  request(),
		Node:     "testnode",
		Command:  command,
		NoPTY:    true,
		SpoolDir: t.TempDir(),
		Patience: time.Minute,
	}
}

// over returns a connect function for a connected bus.
func over(b *bus.Bus) func(context.Context) (*bus.Bus, error) {
	return func(context.Context) (*bus.Bus, error) { return b, nil }
}

// advise serves job.submit and job.status. It advises the last requested batch size, and reports a
// number of earlier runs.
func advise(t *testing.T, b *bus.Bus, runs uint32) {
	t.Helper()
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			return adviceFor(q), nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			return &schemas.JobStatus{JobID: q.JobID, Run: runs}, nil
		}),
	}})
}

func adviceFor(q *schemas.JobRequest) *schemas.Advice {
	a := &schemas.Advice{
		Decision: schemas.MeetsSLO, Action: schemas.ActionStart, Message: "batch 32 meets the SLO",
		Model: q.Model, Nodes: q.Nodes, SLOSeconds: q.SLO.Seconds(),
	}
	a.EventID, a.At, a.JobID = q.JobID+"/0/advice", time.Now().UTC(), q.JobID
	for _, batch := range q.BatchSizes {
		seconds, accuracy := 200/float64(batch), 0.99-float64(batch)/1000
		a.Alternatives = append(a.Alternatives, schemas.Alternative{
			BatchSize: uint32(batch), CPUs: uint32(q.CPUs[0]), Epochs: uint32(q.Epochs),
			PredictedSeconds: &seconds, PredictedAccuracy: &accuracy, Reason: "slower",
		})
	}
	a.Chosen = new(a.Alternatives[len(a.Alternatives)-1])
	return a
}

// serve runs a service until the test ends, and waits until all of its endpoints respond.
func serve(t *testing.T, b *bus.Bus, s bus.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served, ready := make(chan error, 1), make(chan struct{})
	s.Ready = func() { close(ready) }
	go func() { served <- b.Serve(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the service does not respond")
	}
}

// outcome is what Run returns.
type outcome struct {
	runner.Result
	err error
}

// attempt runs a job in the background.
func attempt(ctx context.Context, o runner.Options) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := runner.Run(ctx, o, quiet)
		done <- outcome{got, err}
	}()
	return done
}

// start runs a job in the background whose command starts. The channel is closed after the result.
func start(t *testing.T, ctx context.Context, o runner.Options) <-chan runner.Result {
	done := make(chan runner.Result, 1)
	go func() {
		defer close(done)
		got := <-attempt(ctx, o)
		if got.err != nil {
			t.Error(got.err)
		}
		done <- got.Result
	}()
	return done
}

// publishTo publishes an event.
func publishTo(t *testing.T, b *bus.Bus, e schemas.Event) {
	t.Helper()
	if _, err := b.Publish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// cancelled returns the event that cancels a run of a job.
func cancelled(job string, run uint32, at time.Time, reason string) *schemas.Ended {
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: reason}
	id := schemas.EndedID(job, run, schemas.EventCancelled)
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at.UTC()}, JobID: job, Run: run}
	return e
}

// ids returns the identities of events.
func ids(events []schemas.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.ID())
	}
	return all
}
