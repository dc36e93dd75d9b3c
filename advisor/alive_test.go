package advisor

import (
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
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
	var found []bus.Record
	await(t, "the job to be found", func() (isStored bool) { // one advisor may not know yet that it was lost
		var err error
		found, err = b.Last(within(t), schemas.StreamJob, schemas.JobSubject("silent", schemas.EventFound))
		return err == nil && len(found) > 0
	})
	if len(found) != 1 || found[0].Sequence != lost+1 || found[0].Event.ID() != schemas.FoundID("silent", lost) {
		t.Errorf("found = %+v, want one event directly after the lost one", found)
	}
	await(t, "the job to run", is(schemas.StateRunning))
}

// The progress within the first epoch of an unknown model predicts its end before that epoch ends.
func TestAdvisor_PredictsWithinTheFirstEpoch(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	publish(t, b, advisortest.StartedEvent("young", 1))
	if s := status(t, b, "young"); s.PredictedEndAt != nil {
		t.Fatalf("status without progress: %+v, want no predicted end", s)
	}
	beat := &schemas.Alive{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: "young/1/alive/1", At: time.Now().UTC()}, JobID: "young", Run: 1,
		},
		EpochProgress: schemas.EpochProgress{RunningEpoch: 1, EpochRatio: 0.25, EpochSeconds: 3600},
	}
	if err := b.Notify(within(t), beat); err != nil {
		t.Fatal(err)
	}
	await(t, "the progress", func() bool { return status(t, b, "young").RunningEpoch == 1 })
	s := status(t, b, "young")
	if s.EpochRatio < 0.25 || s.EpochRatio > 0.5 || s.EpochSeconds != 3600 || s.EpochsDone != 0 {
		t.Errorf("progress %+v, want a quarter of the first epoch", s.EpochProgress)
	}
	epochs := time.Duration(s.Epochs)
	earliest, latest := beat.At.Add((epochs-1)*time.Hour), beat.At.Add((epochs+1)*time.Hour)
	if s.PredictedEndAt == nil || s.PredictedEndAt.Before(earliest) || s.PredictedEndAt.After(latest) {
		t.Errorf("predicted end %v, want it between %v and %v", s.PredictedEndAt, earliest, latest)
	}

	setting := advisortest.StartedEvent("young", 1).Setting
	publish(t, b, &schemas.Epoch{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: schemas.EpochID("young", 1, 1), At: time.Now().UTC()}, JobID: "young", Run: 1,
		},
		Setting: setting, Epoch: 1, DurationSeconds: 1, DurationSource: schemas.DurationReported,
	})
	await(t, "the epoch", func() bool { return status(t, b, "young").EpochsDone == 1 })
	if s := status(t, b, "young"); s.RunningEpoch != 0 {
		t.Errorf("progress after the epoch: %+v, want none", s.EpochProgress)
	}
}
