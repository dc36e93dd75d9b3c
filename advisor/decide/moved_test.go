package decide_test

import (
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// The epochs of a job take 1.5 times as long as predicted, and the job is moved to another batch
// size. Its factor does not change, because each epoch is compared with the prediction for its
// batch size.
func TestCluster_FollowsAMovedJob(t *testing.T) {
	const slower = 1.5
	r, c, now := advisortest.Regressors(t), cluster.New(), time.Unix(1_790_000_000, 0).UTC()
	q := schemas.JobRequest{
		JobID:      "a",
		Model:      advisortest.Model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{16, 64},
		Epochs:     10,
		SLO:        schemas.Duration(20 * time.Second),
		Nodes:      []string{"node-a"},
	}.WithDefaults()
	submitted := &schemas.Submitted{Request: q, Advice: *decide.Decide(decide.Ask(c, q, now), r, now)}
	submitted.JobID, submitted.At = "a", now
	if got := submitted.Advice.Chosen.BatchSize; got != 16 {
		t.Fatalf("advised batch size %d, want 16", got)
	}
	sequence := uint64(0)
	apply := func(e schemas.Event) *cluster.Job {
		sequence++
		return c.Apply(e, sequence, now)
	}
	apply(submitted)
	started := advisortest.StartedEvent("a", 1)
	started.At = now
	apply(started)
	var j *cluster.Job
	for n := uint32(1); n <= 8; n++ {
		batch := uint32(16)
		if n > 4 {
			batch = 64
		}
		e := advisortest.EpochEvent("a", 1, n)
		e.BatchSize, e.DurationSeconds = batch, slower*advisortest.TrueSeconds(float64(batch), 2, 1)
		now = now.Add(time.Duration(e.DurationSeconds * float64(time.Second)))
		e.At = now
		j = apply(e)
		if n == 5 {
			apply(&schemas.Moved{
				JobStamp:      schemas.JobStamp{JobID: "a", Run: 1},
				Move:          schemas.MoveBatchSize,
				Outcome:       schemas.MoveCarriedOut,
				FromBatchSize: 16,
				ToBatchSize:   64,
				Epoch:         5,
			})
		}
		a := decide.Decide(decide.AskRunning(c, j, now), r, now)
		if n < 4 {
			continue // two slow epochs are needed that can be compared with the past
		}
		if math.Abs(a.EpochRatio/slower-1) > 0.08 {
			t.Errorf("after epoch %d with batch size %d: got epoch ratio %.3f, want %.3f",
				n, batch, a.EpochRatio, slower)
		}
		if runs := a.Running(batch, 2); runs == nil ||
			math.Abs(
				*runs.PredictedSeconds/(float64(10-n)*advisortest.TrueSeconds(float64(batch), 2, 1)*slower)-1,
			) > 0.1 {
			t.Errorf("after epoch %d with batch size %d: %+v, want the rest of the time within 10 %%",
				n, batch, runs)
		}
	}
	if j.Setting.BatchSize != 64 {
		t.Errorf("got batch size %d, want the current one, 64", j.Setting.BatchSize)
	}
	ended := advisortest.FinishedEvent("a", 1)
	ended.BatchSize, ended.At = 64, now
	j = apply(ended)
	if j.MetSLO == nil || !*j.MetSLO {
		t.Errorf("SLO met: got %v, want true", j.MetSLO)
	}
}
