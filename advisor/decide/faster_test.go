package decide_test

import (
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// A running job with a batch size of 16 may take 64 or 4. It changes only to a batch size with which it is
// clearly faster and as good.
func TestAdviseFaster(t *testing.T) {
	t.Parallel()
	r, now := advisortest.Regressors(t), time.Unix(1_790_000_000, 0).UTC()
	started := advisortest.StartedEvent("a", 1)
	started.BatchSize = 16
	q := decide.AskRunning(cluster.New(), &cluster.Job{
		ID: "a", Run: 1, State: schemas.StateRunning, Setting: started.Setting,
		Request: &schemas.JobRequest{
			JobID: "a", Model: advisortest.Model, BatchSizes: []int{4, 16, 64}, CPUs: schemas.CPUs{2}, Epochs: 10,
		},
	}, now)
	for _, c := range []struct {
		name                                  string
		seconds, bound, accuracy, probability float64 // of 64, relative to 16
		spread                                float64 // of its accuracy
		want                                  uint32  // 0: no advice
	}{
		{"faster and as good", 0.5, 0.6, 0, 0, 0.004, 64},
		{"less accurate", 0.5, 0.6, -0.001, 0, 0.004, 0},
		{"as accurate by a guess", 0.5, 0.6, 0, 0, 0.1, 0},
		{"perhaps not faster", 0.5, 0.97, 0, 0, 0.004, 0},
		{"the SLO is less likely", 0.5, 0.6, 0, -0.01, 0.004, 0},
	} {
		a := decide.Decide(q, r, now)
		current, other := a.Running(16, started.CPUs), a.Running(64, started.CPUs)
		kept := 0.9
		current.Probability = &kept
		for field, ratio := range map[**float64]float64{
			&other.PredictedSeconds: c.seconds, &other.UpperBoundSeconds: c.bound,
		} {
			*field = new(*current.PredictedSeconds * ratio)
		}
		accuracy, likely := *current.PredictedAccuracy+c.accuracy, kept+c.probability
		other.PredictedAccuracy, other.Probability, other.AccuracyLower = &accuracy, &likely, new(accuracy-c.spread)
		got := uint32(0)
		if faster := decide.AdviseFaster(q, a, r, now); faster != nil {
			got = faster.Chosen.BatchSize
			if faster.Action != schemas.ActionBatch || faster.Running(16, started.CPUs) == nil {
				t.Errorf("%s: action %s, alternatives %+v", c.name, faster.Action, faster.Alternatives)
			}
		}
		if got != c.want {
			t.Errorf("%s: advised batch size %d, want %d", c.name, got, c.want)
		}
	}
}
