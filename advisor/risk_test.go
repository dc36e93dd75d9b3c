package advisor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// A job was promised 950 s, and its epochs take twice as long as predicted. The warning comes after the
// second of them that can be compared, with a batch size that saves the SLO. When later epochs are as
// predicted, the all-clear follows. Compared with the SLO, the duration of the test is negligible.
func TestAdvisor_WarnsBeforeSLOIsLost(t *testing.T) {
	b := bustest.New(t)
	startFitted(t, b)
	q := manyEpochs("mlp-1", 950*time.Second)
	q.BatchSizes = []int{16, 64}
	advice, err := submit(t, b, q)
	if err != nil {
		t.Fatal(err)
	}
	if advice.Decision != schemas.MeetsSLO || advice.Chosen.BatchSize != 16 {
		t.Fatalf("got decision %s for batch size %d, want a promise for 16", advice.Decision,
			advice.Chosen.BatchSize)
	}
	publish(t, b, manyStarted("mlp-1"))
	for n := uint32(1); n <= 3; n++ {
		slow := advisortest.EpochEvent("mlp-1", 1, n)
		slow.Epochs, slow.DurationSeconds = 1000, 2*advisortest.TrueSeconds(16, 2, 1)
		publish(t, b, slow)
	}
	risks := followRisks(t, b)
	r := nextRisk(t, risks)
	if r.Cleared || r.Cause != schemas.CauseEpochs || r.Probability >= r.Confidence ||
		r.LeftSeconds < 500 || r.Message == "" {
		t.Errorf("got risk %+v, want a warning for slow epochs with seconds left", r)
	}
	if r.Action != string(schemas.ActionBatch) || r.BatchSize != 64 || r.SavedProbability == nil ||
		r.AccuracyLoss == nil || *r.AccuracyLoss <= 0 {
		t.Errorf("got risk %+v, want a move to batch size 64 and its cost", r)
	}
	if s := status(t, b, "mlp-1"); !s.AtRisk {
		t.Errorf("got status %+v, want at risk", s)
	}
	for n := uint32(4); n <= 60; n++ {
		e := advisortest.EpochEvent("mlp-1", 1, n)
		e.Epochs, e.DurationSeconds = 1000, advisortest.TrueSeconds(16, 2, 1)
		publish(t, b, e)
	}
	if r = nextRisk(t, risks); !r.Cleared || r.Probability < r.Confidence {
		t.Errorf("got risk %+v, want an all-clear", r)
	}
	await(t, "the all-clear", func() bool { return !status(t, b, "mlp-1").AtRisk })
}

// A job whose epoch does not end is warned of before its SLO is over, although no event arrives.
func TestAdvisor_WarnsOfAnOverdueEpoch(t *testing.T) {
	b := bustest.New(t)
	startFitted(t, b)
	q := manyEpochs("mlp-1", 8500*time.Millisecond)
	q.BatchSizes, q.Epochs = []int{16}, 10
	if _, err := submit(t, b, q); err != nil {
		t.Fatal(err)
	}
	publish(t, b, advisortest.StartedEvent("mlp-1", 1))
	publish(t, b, advisortest.EpochEvent("mlp-1", 1, 1))
	if r := nextRisk(t, followRisks(t, b)); r.Cleared || r.Probability >= r.Confidence || r.LeftSeconds <= 0 {
		t.Errorf("got risk %+v, want a warning with time left", r)
	}
}

// A job whose first epoch is slow is warned of by its progress, before that epoch ends.
func TestAdvisor_WarnsWithinTheFirstEpoch(t *testing.T) {
	b := bustest.New(t)
	startFitted(t, b)
	q := manyEpochs("mlp-1", 950*time.Second)
	q.BatchSizes = []int{16}
	if _, err := submit(t, b, q); err != nil {
		t.Fatal(err)
	}
	publish(t, b, manyStarted("mlp-1"))
	await(t, "the start", func() bool { return status(t, b, "mlp-1").State == schemas.StateRunning })
	risks := followRisks(t, b)
	for n, seconds := range []float64{0.001, 1000} { // as predicted, then slower
		beat := &schemas.Alive{
			JobStamp: schemas.JobStamp{
				Stamp: schemas.Stamp{EventID: fmt.Sprint("mlp-1/1/alive/", n), At: time.Now().UTC()},
				JobID: "mlp-1", Run: 1,
			},
			EpochProgress: schemas.EpochProgress{RunningEpoch: 1, EpochRatio: 0.25, EpochSeconds: seconds},
		}
		if err := b.Notify(within(t), beat); err != nil {
			t.Fatal(err)
		}
		await(t, "the progress", func() bool { return status(t, b, "mlp-1").EpochSeconds == seconds })
	}
	r := nextRisk(t, risks)
	if r.Cleared || r.Cause != schemas.CauseEpochs || r.Probability >= r.Confidence || r.LeftSeconds < 900 ||
		r.PredictedSeconds < r.LeftSeconds {
		t.Errorf("got risk %+v, want a warning for a slow epoch with the time left from now", r)
	}
	if s := status(t, b, "mlp-1"); !s.AtRisk || s.EpochsDone != 0 {
		t.Errorf("status %+v, want at risk before the first epoch ends", s)
	}
}

// nextRisk returns the next risk; it fails the test if the log ends before.
func nextRisk(t *testing.T, risks <-chan *schemas.Risk) *schemas.Risk {
	t.Helper()
	r, ok := <-risks
	if !ok {
		t.Fatal("no risk was recorded")
	}
	return r
}

// followRisks delivers the risk events of the log until the test ends.
func followRisks(t *testing.T, b *bus.Bus) <-chan *schemas.Risk {
	ctx, cancel := context.WithCancel(within(t))
	risks, ended := make(chan *schemas.Risk, 16), make(chan error, 1)
	go func() {
		defer close(risks)
		ended <- b.Follow(ctx, bus.FollowOptions{
			Stream:   schemas.StreamJob,
			Subjects: []string{schemas.JobSubject("*", schemas.EventRisk)},
		}, func(r bus.Record) error {
			risks <- r.Event.(*schemas.Risk)
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return risks
}
