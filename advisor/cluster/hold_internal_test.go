package cluster

import (
	"testing"
	"time"

	"courier/schemas"
)

// A cancelled job holds its CPUs until its runner reports that the command has ended, or is silent.
func TestCluster_HoldsTheCPUsOfACancelledJob(t *testing.T) {
	begin := time.Now()
	exitCode := int32(143)
	for _, test := range []struct {
		name      string
		exitCode  *int32
		heartbeat float64       // seconds
		lastBeat  time.Duration // after the start; 0: none after the cancellation at 10 s
		isEnd     bool          // the last heartbeat
		at        time.Duration
		want      float64
	}{
		{name: "it may compute", heartbeat: 10, at: 59 * time.Second, want: 2},
		{name: "its runner is silent", heartbeat: 10, at: 61 * time.Second},
		{name: "it stops slowly", heartbeat: 10, lastBeat: 20 * time.Second, at: 79 * time.Second, want: 2},
		{name: "it has ended", heartbeat: 10, lastBeat: 11 * time.Second, isEnd: true, at: 11 * time.Second},
		{name: "it ended before the cancellation was applied", heartbeat: 10, lastBeat: 9 * time.Second,
			isEnd: true, at: 11 * time.Second},
		{name: "its runner reports its end", heartbeat: 10, exitCode: &exitCode, at: 11 * time.Second},
		{name: "it has no heartbeats", at: 11 * time.Second},
	} {
		c := New()
		started := startedEvent("a", 1)
		started.HeartbeatSeconds = test.heartbeat
		c.Apply(started, 1, begin)
		beat := func() {
			alive := &schemas.Alive{JobStamp: stampOf("a", 1, "a/1/alive/1"), Ended: test.isEnd}
			c.HeardAtEnd(c.Job("a"), alive, begin.Add(test.lastBeat))
		}
		if test.lastBeat > 0 && test.lastBeat < 10*time.Second {
			beat()
		}
		end := finishedEvent("a", 1)
		end.Outcome, end.ExitCode = schemas.EventCancelled, test.exitCode
		c.Apply(end, 2, begin.Add(10*time.Second))
		if test.lastBeat > 10*time.Second {
			beat()
		}
		if got := c.HeldByNode(begin.Add(test.at))["node-a"]; got != test.want {
			t.Errorf("%s: %g CPUs are held, want %g", test.name, got, test.want)
		}
		c.ResetHolds() // after a restart, heartbeats before the cancellation are unknown
		if test.name == "its runner is silent" && c.HeldCPUs("node-a", begin.Add(69*time.Second)) != 2 {
			t.Errorf("%s: no CPUs are held after a restart", test.name)
		}
	}
}
