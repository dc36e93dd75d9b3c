package advisor

import (
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/schemas"
)

// A job is predicted again without an event when its epoch takes twice as long as the last one, and when it
// should have ended, but neither before nor once it is known to be at risk.
func TestAdvisor_PredictsOverdueJobsAgain(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0).UTC()
	for _, c := range []struct {
		name      string
		predicted float64 // seconds from the last epoch to the end
		after     time.Duration
		atRisk    bool
		want      int
	}{
		{"in its epoch", 30, 12 * time.Second, false, 0},
		{"an epoch twice as long as the last one", 30, 21 * time.Second, false, 1},
		{"it should have ended", 10, 12 * time.Second, false, 1},
		{"at risk", 10, 12 * time.Second, true, 0},
	} {
		a := &Advisor{cluster: cluster.New()}
		start := advisortest.StartedEvent("a", 1)
		start.At, start.Epochs = begin, 3
		a.cluster.Apply(start, 1, begin)
		e, at := advisortest.EpochEvent("a", 1, 1), begin.Add(10*time.Second)
		e.At, e.DurationSeconds, e.Epochs = at, 10, 3
		a.cluster.Apply(e, 2, at)
		advice := &schemas.Advice{JobStamp: e.JobStamp, CauseSequence: 2,
			Chosen: &schemas.Alternative{PredictedSeconds: &c.predicted}}
		a.cluster.Apply(advice, 3, at)
		if c.atRisk {
			a.cluster.Apply(&schemas.Risk{JobStamp: e.JobStamp, CauseSequence: 2}, 4, at)
		}
		if got := len(a.overdueQuestions(at.Add(c.after))); got != c.want {
			t.Errorf("%s: %d questions, want %d", c.name, got, c.want)
		}
	}
}
