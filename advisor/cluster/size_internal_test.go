package cluster

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"courier/schemas"
)

// podEvents returns the events of a job with its own model on its own node, as in a cluster where
// each pod is a node.
func podEvents(n int) []schemas.Event {
	id, probability, seconds := fmt.Sprintf("job-%d", n), 0.97, 4.2
	setting := schemas.Setting{
		Model: fmt.Sprintf("model-%d", n), BatchSize: 64, CPUs: 2, Epochs: 2,
		Nodes: []string{fmt.Sprintf("pod-%d", n)},
	}
	stamp := func(run uint32) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id}, JobID: id, Run: run}
	}
	chosen := schemas.Alternative{
		BatchSize: 64, CPUs: 2, Epochs: 2, Probability: &probability, PredictedSeconds: &seconds,
		UpperBoundSeconds: &seconds, CPUSeconds: &seconds, Reason: "most accurate",
	}
	advice := schemas.Advice{
		JobStamp: stamp(0), Decision: schemas.MeetsSLO, Model: setting.Model, Nodes: setting.Nodes,
		Confidence: 0.95, Chosen: &chosen,
		Alternatives: []schemas.Alternative{chosen, chosen, chosen, chosen},
		Regressors:   map[string]string{schemas.TargetEpochTime: "digest"},
	}
	request := schemas.JobRequest{
		JobID: id, Model: setting.Model, CPUs: schemas.CPUs{2}, BatchSizes: []int{32, 64, 128, 256},
		Epochs: 2, SLO: schemas.Duration(time.Minute), Confidence: 0.95, User: "ada",
	}
	again := advice
	again.Run, again.Action = 1, schemas.ActionKeep
	return []schemas.Event{
		&schemas.Submitted{JobStamp: stamp(0), Request: request, Advice: advice},
		&schemas.Started{JobStamp: stamp(1), Setting: setting},
		&schemas.Epoch{JobStamp: stamp(1), Setting: setting, Epoch: 1, DurationSeconds: 2},
		&again,
		&schemas.Epoch{JobStamp: stamp(1), Setting: setting, Epoch: 2, DurationSeconds: 2},
		&schemas.Ended{
			JobStamp:   stamp(1),
			Setting:    setting,
			Outcome:    schemas.EventFinished,
			EpochsDone: 2,
		},
	}
}

// runThrough applies all events of a job.
func runThrough(c *Cluster, n int, at time.Time) { apply(c, podEvents(n), n, at) }

func apply(c *Cluster, events []schemas.Event, n int, at time.Time) {
	for i, e := range events {
		at = at.Add(2 * time.Second)
		e.Stamped().At = at
		c.Apply(e, uint64(8*n+i+1), at)
	}
}

// Regardless of the number of jobs, models and nodes, the state stays within its limits. With
// COURIER_SIZE there are 300,000 names and the default limits, otherwise a tenth.
func TestCluster_NamesAndEndedJobsAreBounded(t *testing.T) {
	names, c := 300_000, New()
	if os.Getenv("COURIER_SIZE") == "" {
		names /= 10
		c.limits = stateLimits{maxNodes / 10, maxModels / 10, maxEndedJobs / 10}
	}
	at := time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	for n := range names / 2 { // each has a model and a node of its own
		runThrough(c, n, at.Add(time.Duration(n)*time.Second))
	}
	for _, size := range []struct {
		name      string
		got, want int
	}{
		{"jobs", len(c.jobs), c.limits.ended},
		{"jobs in order", len(c.order.all), c.limits.ended},
		{"running jobs", len(c.running), 0},
		{"hardware", len(c.fleet), len(c.nodes)},
		{"expected nodes", len(c.arrivals.onNode), 0},
	} {
		if size.got != size.want {
			t.Errorf("%d %s, want %d", size.got, size.name, size.want)
		}
	}
	for _, size := range []struct {
		name       string
		got, limit int
	}{
		{"nodes", len(c.nodes), c.limits.nodes},
		{"models", len(c.models), c.limits.models},
	} {
		if size.got > size.limit || size.got < size.limit*15/16 {
			t.Errorf("%d %s, want almost %d", size.got, size.name, size.limit)
		}
	}
	if heap := heapBytes(); os.Getenv("COURIER_SIZE") != "" {
		t.Logf("heap %.1f MB", float64(heap)/1e6)
	}
	runtime.KeepAlive(c)
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
