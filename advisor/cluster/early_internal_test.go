package cluster

import (
	"testing"
	"time"

	"courier/schemas"
)

// A job that ends by itself before its last epoch meets its SLO if its answer allows that, or if it reached
// its target accuracy; not if it was stopped.
func TestCluster_JudgesJobsThatFinishEarly(t *testing.T) {
	begin := time.Date(2026, time.November, 26, 8, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name     string
		request  schemas.JobRequest
		accuracy float64
		reason   string
		mayStop  bool
		want     bool
	}{
		{name: "nothing allows it"},
		{name: "the answer allows it", mayStop: true, want: true},
		{name: "the answer allows it, but it was stopped", mayStop: true, reason: "stopped after epoch 3"},
		{name: "the target is reached", request: schemas.JobRequest{TargetAccuracy: 0.8}, accuracy: 0.8, want: true},
		{name: "the target is missed", request: schemas.JobRequest{TargetAccuracy: 0.8}, accuracy: 0.7},
	} {
		c, sequence := New(), uint64(0)
		apply := func(e schemas.Event) *Job {
			sequence++
			return c.Apply(e, sequence, begin)
		}
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: "now/s", At: begin}, JobID: "now"}
		q := tc.request
		q.JobID, q.Model, q.CPUs, q.SLO = "now", "m", schemas.CPUs{1}, schemas.Duration(time.Hour)
		apply(&schemas.Submitted{JobStamp: stamp, Request: q, Advice: schemas.Advice{MayStopEarly: tc.mayStop}})
		set := schemas.Setting{Model: "m", BatchSize: 32, CPUs: 1, Epochs: 10, Nodes: []string{"n"}}
		stamp.Run = 1
		apply(&schemas.Started{JobStamp: stamp, Setting: set})
		for n := range uint32(3) {
			apply(&schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: n + 1, DurationSeconds: 1,
				Accuracy: &tc.accuracy})
		}
		j := apply(&schemas.Ended{JobStamp: stamp, Setting: set, Outcome: schemas.EventFinished,
			EpochsDone: 3, DurationSeconds: 3, Reason: tc.reason})
		if met := j.MetSLO != nil && *j.MetSLO; met != tc.want || j.IsIncomplete() == tc.want {
			t.Errorf("%s: met %v, incomplete %v; want met %v", tc.name, met, j.IsIncomplete(), tc.want)
		}
	}
}
