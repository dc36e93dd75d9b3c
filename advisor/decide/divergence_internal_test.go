package decide

import (
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// A loss that rises in three epochs causes one warning, and a falling one the all-clear.
func TestWarnDivergence_OncePerRise(t *testing.T) {
	p, seconds := 0.99, 10.0
	c, setting := cluster.New(), schemas.Setting{BatchSize: 16, CPUs: 1, Epochs: 9}
	alternative := schemas.Alternative{
		BatchSize: 16, CPUs: 1, Probability: &p, PredictedSeconds: &seconds,
	}
	advice := &schemas.Advice{
		Confidence: 0.95, Alternatives: []schemas.Alternative{alternative}, Chosen: &alternative,
	}
	at := time.Unix(1_790_000_000, 0)
	for i, step := range []struct {
		loss  float64
		warns bool
		ends  bool
	}{
		{1, false, false}, {1.2, false, false}, {1.4, false, false}, {1.6, true, false},
		{1.8, false, false}, {1.5, false, true}, {1.6, false, false},
	} {
		at = at.Add(time.Second)
		e := &schemas.Epoch{
			Setting: setting, Epoch: uint32(i + 1), Loss: &step.loss, DurationSeconds: 1, NodeCores: 2,
		}
		e.JobID, e.Run, e.At = "a", 1, at
		j := c.Apply(e, uint64(i+1), at)
		r := WarnDivergence(j, &Question{}, advice)
		if (r != nil) != (step.warns || step.ends) {
			t.Fatalf("epoch %d: risk %+v", i+1, r)
		}
		if r == nil {
			continue
		}
		r.EventID, r.At = schemas.DivergenceID(j.ID, uint64(i)), at
		if err := r.Validate(); err != nil || r.Cleared != step.ends || r.Message == "" {
			t.Errorf("epoch %d: risk %+v: %v", i+1, r, err)
		}
		j.Divergence = r
	}
}
