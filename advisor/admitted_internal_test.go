package advisor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// example reads an example event of the contract.
func example[E any](t *testing.T, name string) *E {
	t.Helper()
	data, err := os.ReadFile("../schemas/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	e := new(E)
	if err := json.Unmarshal(data, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// queuedJob returns the events of a running job that was queued before.
func queuedJob(t *testing.T) []schemas.Event {
	t.Helper()
	submitted := example[schemas.Submitted](t, "submitted")
	admitted := example[schemas.JobAdmitted](t, "admitted")
	submitted.Advice.Admission = &schemas.Admission{
		Policy:   schemas.AdmissionQueue,
		Verdict:  schemas.Queued,
		Position: 1,
	}
	admitted.JobID, admitted.Advice.JobID = submitted.JobID, submitted.JobID
	admitted.EventID = schemas.AdmittedID(submitted.JobID)
	admitted.Advice.EventID, admitted.Advice.CauseSequence = admitted.EventID, 1
	begun := &schemas.Started{HeartbeatSeconds: 5}
	begun.Setting = schemas.Setting{BatchSize: 16, CPUs: 2, Epochs: 10, Nodes: []string{"node-a"}}
	begun.Model = submitted.Request.Model
	begun.JobStamp = schemas.JobStamp{JobID: submitted.JobID, Run: 1}
	begun.EventID, begun.At = schemas.StartedID(submitted.JobID, 1), admitted.Advice.At
	return []schemas.Event{submitted, admitted, begun}
}

// run starts an advisor and waits until it answers requests.
func run(t *testing.T, b *bus.Bus) *Advisor {
	t.Helper()
	a := New(b, Options{}, slog.New(slog.DiscardHandler), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-a.Answering():
	case <-time.After(patience):
		t.Fatal("the advisor does not answer")
	}
	return a
}

// publishAll publishes events of earlier advisors and runners.
func publishAll(t *testing.T, b *bus.Bus, events []schemas.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, e := range events {
		e.Stamped().At = time.Now().UTC()
		if _, err := b.Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
}

// A starting advisor does not read ADVICE, so it re-predicts every running job.
func TestAdvisor_RepredictsRunningJobsAfterARestart(t *testing.T) {
	b := bustest.New(t)
	events := queuedJob(t)
	publishAll(t, b, events)
	a := run(t, b)
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.Live("mlp-7")
	if j == nil || j.State != schemas.StateRunning || j.Advice == nil ||
		j.Advice.CauseSequence != j.Last || j.Advice.Run != 1 {
		t.Errorf("job after the restart = %+v, want run 1 with the advice of its last event", j)
	}
}

// If an advisor crashes after an admission and before publishing its advice, the next advisor
// publishes the advice.
func TestAdvisor_PublishesTheAdviceOfAnAdmittedJob(t *testing.T) {
	b := bustest.New(t)
	events := queuedJob(t)
	publishAll(t, b, events[:2])
	run(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	published := errors.New("stop following")
	err := b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamAdvice}, func(r bus.Record) error {
		if r.Event.ID() == schemas.AdmittedID("mlp-7") {
			return published
		}
		return nil
	})
	if !errors.Is(err, published) {
		t.Errorf("ADVICE lacks the advice of the admission: %v", err)
	}
}
