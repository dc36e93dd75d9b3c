package advisor

import (
	"encoding/json"
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

// publishAll publishes events of earlier advisors and runners.
func publishAll(t *testing.T, b *bus.Bus, events []schemas.Event) {
	t.Helper()
	for _, e := range events {
		e.Stamped().At = time.Now().UTC()
		publish(t, b, e)
	}
}

// A starting advisor does not read ADVICE, so it re-predicts every running job.
func TestAdvisor_RepredictsRunningJobsAfterARestart(t *testing.T) {
	b := bustest.New(t)
	events := queuedJob(t)
	publishAll(t, b, events)
	a := start(t, b)
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.Job("mlp-7")
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
	start(t, b)
	await(t, "the advice of the admission", func() bool {
		records, err := b.Last(within(t), schemas.StreamAdvice, schemas.JobSubject("mlp-7", schemas.EventAdvice))
		return err == nil && len(records) == 1 && records[0].Event.ID() == schemas.AdmittedID("mlp-7")
	})
}
