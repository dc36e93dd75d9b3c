package cluster

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

// A job that ends by itself before its last epoch meets its SLO if its request or earlier jobs of the
// model allow that, or if it reached its target accuracy; not if it was stopped.
func TestCluster_JudgesJobsThatFinishEarly(t *testing.T) {
	begin := time.Date(2026, time.November, 26, 8, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name     string
		request  schemas.JobRequest
		accuracy float64
		reason   string
		before   int // jobs of the model that ended early
		want     bool
	}{
		{name: "nothing allows it"},
		{name: "the request allows it", request: schemas.JobRequest{MayStopEarly: true}, want: true},
		{name: "the request allows it, but it was stopped", request: schemas.JobRequest{MayStopEarly: true},
			reason: "stopped after epoch 3"},
		{name: "the target is reached", request: schemas.JobRequest{TargetAccuracy: 0.8}, accuracy: 0.8, want: true},
		{name: "the target is missed", request: schemas.JobRequest{TargetAccuracy: 0.8}, accuracy: 0.7},
		{name: "one earlier job did so", before: 1},
		{name: "two earlier jobs did so", before: 2, want: true},
	} {
		c, sequence := New(), uint64(0)
		run := func(id string, q schemas.JobRequest) *Job {
			apply := func(e schemas.Event) *Job {
				sequence++
				return c.Apply(e, sequence, begin)
			}
			stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: id + "/s", At: begin}, JobID: id}
			q.JobID, q.Model, q.CPUs, q.SLO = id, "m", schemas.CPUs{1}, schemas.Duration(time.Hour)
			apply(&schemas.Submitted{JobStamp: stamp, Request: q})
			set := schemas.Setting{Model: "m", BatchSize: 32, CPUs: 1, Epochs: 10, Nodes: []string{"n"}}
			stamp.Run = 1
			apply(&schemas.Started{JobStamp: stamp, Setting: set})
			for n := range uint32(3) {
				apply(&schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: n + 1, DurationSeconds: 1,
					Accuracy: &tc.accuracy})
			}
			return apply(&schemas.Ended{JobStamp: stamp, Setting: set, Outcome: schemas.EventFinished,
				EpochsDone: 3, DurationSeconds: 3, Reason: tc.reason})
		}
		for i := range tc.before {
			run(fmt.Sprint("before-", i), schemas.JobRequest{})
		}
		j := run("now", tc.request)
		if met := j.MetSLO != nil && *j.MetSLO; met != tc.want || j.IsIncomplete() == tc.want {
			t.Errorf("%s: met %v, incomplete %v; want met %v", tc.name, met, j.IsIncomplete(), tc.want)
		}
	}
}
