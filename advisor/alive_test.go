package advisor_test

import (
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus/bustest"
	"courier/schemas"
)

// A job that was silent and sends heartbeats again runs: its CPUs are not free.
func TestAdvisor_RevivesALostJobByAHeartbeat(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	start(t, b) // both record it; the stream keeps one
	started := advisortest.StartedEvent("silent", 1)
	publish(t, b, started)
	stamp := func(id string) schemas.JobStamp {
		return schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: id, At: time.Now().UTC()}, JobID: "silent", Run: 1,
		}
	}
	lost := publish(t, b, &schemas.Ended{
		JobStamp: stamp(schemas.LostID("silent", 1)), Setting: started.Setting, Outcome: schemas.EventLost,
	})
	is := func(state schemas.State) func() bool {
		return func() bool { return status(t, b, "silent").State == state }
	}
	await(t, "the job to be lost", is(schemas.StateLost))
	other := schemas.Alive{JobStamp: stamp("silent/2/alive/1")}
	other.Run = 2
	for _, e := range []*schemas.Alive{&other, {JobStamp: stamp("silent/1/alive/9")}} {
		if err := b.Notify(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the job to run", is(schemas.StateRunning))
	found, err := b.Last(within(t), schemas.StreamJob, schemas.JobSubject("silent", schemas.EventFound))
	if err != nil || len(found) != 1 || found[0].Sequence != lost+1 ||
		found[0].Event.ID() != schemas.FoundID("silent", lost) {
		t.Errorf("found = %+v, %v, want one event directly after the lost one", found, err)
	}
}
