package cluster

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"courier/schemas"
)

// smallLimits are so low that a short history reaches all of them.
var smallLimits = stateLimits{nodes: 40, models: 12, ended: 150}

// historySteps returns the number of steps of all random histories; COURIER_STEPS overrides it.
func historySteps(t *testing.T) int {
	text := os.Getenv("COURIER_STEPS")
	if text == "" {
		return 10_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// In any history and with any restart, a snapshot plus the rest of the log gives the same state as
// no restart. It gives the same answers, and keeps the indices and the limits.
func TestCluster_RandomHistory(t *testing.T) {
	const seeds = 4
	steps := historySteps(t) / seeds
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playHistory(t, seed, steps) })
	}
}

func playHistory(t *testing.T, seed uint64, steps int) {
	w := newRandomCluster(New(), seed)
	w.c.limits = smallLimits
	saved, since := restored(t, w.c), 0 // a restored state, and the log position that follows it
	checks, restarts := 0, 0
	next := 100
	for step := range steps {
		w.step(t)
		if step%50 == 0 {
			checkIndices(t, w)
		}
		if step < next {
			continue
		}
		next = step + 50 + w.random.IntN(2000)
		checks++
		applyAll(saved, w.log[since:])
		live := encoded(t, w.c)
		if !bytes.Equal(encoded(t, saved), live) {
			t.Fatalf("step %d: the restored state differs:\n%s", step,
				differenceOf(t, saved, w.c))
		}
		if checks%8 == 1 {
			if diff := firstDifference(fingerprint(t, saved, w.now), fingerprint(t, w.c, w.now)); diff != "" {
				t.Fatalf("step %d: the restored state answers differently: %s", step, diff)
			}
		}
		if w.random.IntN(2) == 0 { // the advisor restarts
			w.c = saved
			restarts++
		}
		saved = restored(t, w.c)
		w.log = slices.Clone(w.log[max(0, len(w.log)-3000):])
		since = len(w.log)
	}
	t.Logf("%d steps, %d events, %d comparisons, %d restarts", steps, w.sequence, checks, restarts)
}

// differenceOf returns where the encodings of two states differ.
func differenceOf(t *testing.T, got, want *Cluster) string {
	t.Helper()
	lines := func(c *Cluster) string {
		frames := decompressed(t, encoded(t, c))
		return string(bytes.ReplaceAll(frames, []byte(`,"`), []byte(",\n\"")))
	}
	return firstDifference(lines(got), lines(want))
}

// checkIndices recomputes the indices that the state updates incrementally, and compares them.
func checkIndices(t *testing.T, w *randomCluster) {
	t.Helper()
	c := w.c
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("after event %d: %s", w.sequence, fmt.Sprintf(format, args...))
	}
	counts := map[schemas.State]int{}
	procs, jobs, expected := map[string]float64{}, map[string]float64{}, map[string]float64{}
	ended := 0
	for id, j := range c.jobs {
		counts[j.State]++
		if j.ID != id {
			wrong("job %s has the key %s", j.ID, id)
		}
		if (c.running[id] == j) != (j.State == schemas.StateRunning) {
			wrong("job %s has state %s, in the running index: %v", id, j.State, c.running[id] == j)
		}
		if j.State == schemas.StateRunning {
			for _, n := range j.Setting.Nodes {
				procs[n] += float64(j.Setting.CPUs)
				jobs[n]++
			}
		}
		if j.IsExpected(w.now) {
			seen := map[string]bool{}
			for _, n := range j.Promise.Nodes {
				if !seen[n] {
					expected[n] += j.promisedCPUs()
				}
				seen[n] = true
			}
		}
		if j.EndOrder > 0 {
			ended++
		}
		if j.IsPending() != (j.EndOrder == 0) && j.State != schemas.StateSubmitted ||
			j.IsExpected(w.now) && j.EndOrder > 0 {
			wrong("job %s has state %s and endOrder %d", id, j.State, j.EndOrder)
		}
	}
	if len(c.running) != counts[schemas.StateRunning] ||
		len(c.waiting.all) != counts[schemas.StateQueued] {
		wrong("%d jobs run and %d are queued, the indices have %d and %d", counts[schemas.StateRunning],
			counts[schemas.StateQueued], len(c.running), len(c.waiting.all))
	}
	isSorted := slices.IsSortedFunc(c.waiting.all, compareUrgency) && slices.IsSortedFunc(c.order.all, compareListed) &&
		slices.IsSortedFunc(c.ended.all, compareEnds)
	if !isSorted {
		wrong("a list is not sorted")
	}
	if ended != len(c.ended.all) || len(c.jobs) != len(c.order.all) {
		wrong("%d may be dropped, %d jobs in total; the lists have %d and %d", ended, len(c.jobs),
			len(c.ended.all), len(c.order.all))
	}
	for _, j := range slices.Concat(c.order.all, c.ended.all) {
		if c.jobs[j.ID] != j {
			wrong("a list has another state of job %s", j.ID)
		}
	}
	for name, n := range c.nodes {
		if float64(len(n.Running)) != jobs[name] {
			wrong("%d jobs on node %s, want %g", len(n.Running), name, jobs[name])
		}
		if n.Load.Processes != procs[name] || n.Load.Jobs != jobs[name] ||
			jobs[name] == 0 && n.Load != (LoadIntegral{Node: name}) {
			wrong("load integral %+v of node %s, want %g jobs and %g processes", n.Load, name,
				jobs[name], procs[name])
		}
		if sum := c.arrivals.cpus(name, w.now); math.Abs(sum-expected[name]) > 1e-9 {
			wrong("%g CPUs are expected on node %s, want %g", sum, name, expected[name])
		}
	}
	for name := range c.fleet {
		if c.nodes[name] == nil {
			wrong("the fleet has the unknown node %s", name)
		}
	}
	checkLimits(t, w)
}

// busyNodes returns the number of nodes with running jobs.
func busyNodes(c *Cluster) (n int) {
	for _, node := range c.nodes {
		if len(node.Running) > 0 {
			n++
		}
	}
	return n
}

func checkLimits(t *testing.T, w *randomCluster) {
	t.Helper()
	c := w.c
	for _, l := range []struct {
		name      string
		size, max int
	}{
		{"nodes", len(c.nodes), max(c.limits.nodes, busyNodes(c))},
		{"models", len(c.models), c.limits.models},
		{"ended jobs", len(c.ended.all), c.limits.ended},
	} {
		if l.size > l.max {
			t.Fatalf("after event %d: got %d %s, want at most %d", w.sequence, l.size, l.name, l.max)
		}
	}
}
