package cluster

import (
	"bytes"
	"testing"

	"courier/schemas"
)

// history returns the events of a random cluster, without duplicates.
func history(t *testing.T, seed uint64, steps int) []logged {
	t.Helper()
	w := newRandomCluster(New(), seed)
	w.copies = false
	for range steps {
		w.step(t)
	}
	return w.log
}

// clusterOf has no low limits, because a duplicate event of a dropped job looks like an event of a new
// job.
func clusterOf(log []logged) *Cluster {
	c := New()
	applyAll(c, log)
	return c
}

// applyAll applies a log; a nil event stands for heartbeats.
func applyAll(c *Cluster, log []logged) {
	for _, l := range log {
		if l.event == nil {
			applyHeartbeats(c, l.at)
		} else {
			c.Apply(l.event, l.sequence, l.at)
		}
	}
}

// withCopies returns a log with duplicates of job events: immediate ones and late ones.
func withCopies(log []logged) []logged {
	var all []logged
	for i, l := range log {
		all = append(all, l)
		if isJobEvent(l.event) {
			all = append(all, l)
		}
		for _, back := range []int{3, 40, 700} {
			if i >= back && isJobEvent(log[i-back].event) {
				late := log[i-back]
				late.at = l.at
				all = append(all, late)
			}
		}
	}
	return all
}

func isJobEvent(e schemas.Event) bool {
	_, isSample := e.(*schemas.Sample)
	return e != nil && !isSample
}

// A replay of a log always gives the same state, despite immediate and late duplicates and a
// restart from a snapshot at any point.
func TestCluster_ReplaysToTheSameState(t *testing.T) {
	const steps = 800
	for seed := range uint64(2) {
		log := history(t, seed, steps)
		want := clusterOf(log)
		if len(want.ended.all) < 50 {
			t.Fatalf("seed %d: got %d ended jobs, want more", seed, len(want.ended.all))
		}
		same := func(name string, got *Cluster) {
			t.Helper()
			if !bytes.Equal(encoded(t, got), encoded(t, want)) {
				t.Fatalf("seed %d, %s: %s", seed, name, differenceOf(t, got, want))
			}
		}
		same("with duplicates", clusterOf(withCopies(log)))
		for cut := 0; cut < len(log); cut += 1 + len(log)/10 {
			c := restored(t, clusterOf(log[:cut]))
			applyAll(c, log[cut:])
			same("cut and restored", c)
		}
	}
}
