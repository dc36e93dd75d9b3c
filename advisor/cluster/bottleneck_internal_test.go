package cluster

import (
	"io"
	"math"
	"testing"
	"time"

	"courier/policy/speed"
	"courier/schemas"
)

// measuredEpoch returns an epoch of ten seconds on two CPUs.
func measuredEpoch(change func(e *schemas.Epoch)) *schemas.Epoch {
	e := &schemas.Epoch{
		Setting:         schemas.Setting{BatchSize: 16, CPUs: 2, Nodes: []string{"node-a"}},
		DurationSeconds: 10,
	}
	change(e)
	return e
}

func TestJob_Bottleneck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	usedCPU := func(seconds float64) func(e *schemas.Epoch) {
		return func(e *schemas.Epoch) { e.JobCPUSeconds = value(seconds) }
	}
	for _, test := range []struct {
		name    string
		epoch   func(e *schemas.Epoch)
		want    schemas.Bottleneck
		starved bool
	}{
		{"nothing is measured", func(*schemas.Epoch) {}, "", false},
		{"busy CPUs", usedCPU(18), schemas.BottleneckCPU, false},
		{"half of the CPUs busy", usedCPU(10), "", false},
		{"one CPU is enough", usedCPU(8), schemas.BottleneckSurplus, false},
		{
			"the job waited for its CPUs",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.JobCPUPressureRatio = value(8), value(0.4) },
			schemas.BottleneckThreads, false,
		},
		{
			"the node is full",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.NodeCPURatio = value(8), value(0.97) },
			"", false,
		},
		{
			"the job waits for its storage",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.JobIOPressureRatio = value(8), value(0.3) },
			schemas.BottleneckInput, true,
		},
		{
			"it waits, and its CPUs are busy nevertheless",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.JobIOPressureRatio = value(19), value(0.3) },
			schemas.BottleneckInput, false,
		},
		{
			"another job of the node waits",
			func(e *schemas.Epoch) {
				e.JobCPUSeconds, e.JobIOPressureRatio, e.NodeIOWaitRatio = value(18), value(0), value(0.5)
			},
			schemas.BottleneckCPU, false,
		},
		{
			"only the waits of the node are known",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.NodeIOWaitRatio = value(8), value(0.5) },
			schemas.BottleneckInput, true,
		},
		{
			"the job waits for memory",
			func(e *schemas.Epoch) {
				e.JobCPUSeconds, e.JobMemoryPressureRatio, e.JobIOPressureRatio = value(4), value(0.2), value(0.5)
			},
			schemas.BottleneckMemory, true,
		},
		{
			"several nodes",
			func(e *schemas.Epoch) { e.JobCPUSeconds, e.Nodes = value(18), []string{"a", "b"} },
			"", false,
		},
	} {
		j := &Job{State: schemas.StateRunning, Setting: schemas.Setting{CPUs: 2}}
		least := speed.MinReports
		if test.want == schemas.BottleneckThreads {
			least = 2
		}
		for n := range 5 {
			if got := j.Bottleneck(); n < least && got != "" {
				t.Errorf("%s: after %d epochs: %q", test.name, n, got)
			}
			j.addUse(measuredEpoch(test.epoch), false)
		}
		if got := j.Bottleneck(); got != test.want || len(j.Uses) > speed.MinReports {
			t.Errorf("%s: %q after %d epochs, want %q", test.name, got, len(j.Uses), test.want)
		}
		if got := j.IsStarved(); got != test.starved {
			t.Errorf("%s: starved = %v", test.name, got)
		}
		if j.State = schemas.StateFinished; j.Bottleneck() != "" {
			t.Errorf("%s: an ended job has the bottleneck %q", test.name, j.Bottleneck())
		}
	}
}

// Epochs with other CPUs or another batch size, or of very different length, show no bottleneck.
func TestJob_BottleneckNeedsStableEpochs(t *testing.T) {
	busy := func(seconds float64, cpus, batch uint32) *schemas.Epoch {
		return measuredEpoch(func(e *schemas.Epoch) {
			used := 0.95 * seconds * float64(cpus)
			e.DurationSeconds, e.CPUs, e.BatchSize, e.JobCPUSeconds = seconds, cpus, batch, &used
		})
	}
	for name, last := range map[string]*schemas.Epoch{
		"slower epoch": busy(20, 2, 16), "fewer CPUs": busy(10, 1, 16), "other batch size": busy(10, 2, 32),
	} {
		j := &Job{State: schemas.StateRunning, Setting: schemas.Setting{CPUs: 2}}
		for range speed.MinReports {
			j.addUse(busy(10, 2, 16), false)
		}
		if got := j.Bottleneck(); got != schemas.BottleneckCPU {
			t.Fatalf("%s: before: %q", name, got)
		}
		if j.addUse(last, false); j.Bottleneck() != "" {
			t.Errorf("%s: %q", name, j.Bottleneck())
		}
	}
}

// A job remembers how it ran with other CPUs, but not how it ran on a node with more processes than CPUs. It
// also remembers what it used, which does not depend on that.
func TestJob_RemembersEpochsOfUncrowdedNodes(t *testing.T) {
	used := 4.0 // of ten seconds
	for _, isCrowded := range []bool{false, true} {
		j := &Job{State: schemas.StateRunning, Setting: schemas.Setting{CPUs: 2}}
		for n := range uint32(speed.MinReports) {
			j.addUse(measuredEpoch(func(e *schemas.Epoch) { e.CPUs, e.JobCPUSeconds = 2, &used }), isCrowded)
			j.EpochsDone = n + 1
		}
		j.changeCPUs(1)
		if use := j.LastUse(); use.WorkerCPURatio != 0.2 || j.Window() != nil {
			t.Errorf("crowded %t: before an epoch with one CPU: use %+v, want 0.2 of two CPUs", isCrowded, use)
		}
		j.addUse(measuredEpoch(func(e *schemas.Epoch) { e.CPUs, e.JobCPUSeconds = 1, &used }), isCrowded)
		if former := j.FormerShapes(); (len(former) == 0) != isCrowded {
			t.Errorf("crowded %t: former shapes %+v", isCrowded, former)
		}
	}
}

func TestLossWithoutCPU(t *testing.T) {
	for _, test := range []struct {
		cpus       int
		used, want float64
	}{
		{1, 0.2, 1},
		{4, 0.25, 0},      // one CPU is busy at a time
		{2, 0.75, 1. / 3}, // serial 1, parallel 2: 2 on two CPUs, 3 on one
		{4, 1, 1. / 4},    // all is parallel
		{4, 0.4, 1. / 16}, // serial 1, parallel 1: 5/4 on four CPUs, 4/3 on three
	} {
		if got := lossWithoutCPU(test.cpus, test.used); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%d CPUs, used %v: %v, want %v", test.cpus, test.used, got, test.want)
		}
	}
}

// An epoch with absurd figures does not prevent snapshots.
func TestCluster_SnapshotsAbsurdFigures(t *testing.T) {
	large := 1e300
	e := measuredEpoch(func(e *schemas.Epoch) {
		e.JobID, e.Run, e.Epoch, e.At = "a", 1, 1, time.Unix(1_790_000_000, 0)
		e.DurationSeconds, e.Loss = 1e-300, &large
		e.JobCPUSeconds = &large
		e.JobReadBytes, e.JobWrittenBytes = &large, &large
	})
	c := New()
	c.Apply(e, 1, e.At)
	if len(c.jobs["a"].Uses) != 1 || len(c.jobs["a"].Losses.Reports) != 1 {
		t.Fatal("the epoch was not recorded")
	}
	if err := c.Freeze().Encode(io.Discard); err != nil {
		t.Error(err)
	}
}

// A job that waits for its input gets the next larger number of loaders. The predicted speed is that of the
// rest of the epoch, or of the input divided among the loaders.
func TestJob_MoreLoaders(t *testing.T) {
	for _, test := range []struct {
		name     string
		loaders  uint32
		wait     float64 // of ten seconds
		isFixed  bool
		wantTo   uint32
		wantGain float64
	}{
		{"it loads its batches itself", 0, 8, false, 1, 1.25},
		{"the input of two loaders takes the whole epoch", 2, 8, false, 4, 2},
		{"the training takes nearly as long", 2, 3, false, 4, 1 / 0.7},
		{"it hardly waits", 2, 1, false, 0, 0},
		{"the request lists no more", 4, 8, false, 0, 0},
		{"the runner undid a move, or cannot make one", 2, 8, true, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &Job{
				State: schemas.StateRunning, MovesLoaders: !test.isFixed,
				Request: &schemas.JobRequest{Loaders: []int{4, 0, 1, 2}},
			}
			for range speed.MinReports {
				e := measuredEpoch(func(e *schemas.Epoch) {
					e.Loaders, e.InputWaitSeconds, e.JobCPUSeconds = test.loaders, &test.wait, new(5.0)
				})
				j.Setting = e.Setting
				j.addUse(e, false)
			}
			m := j.MoreLoaders()
			if m == nil {
				m = &schemas.PlannedMove{}
			}
			if m.ToLoaders != test.wantTo || math.Abs(m.SpeedRatio-test.wantGain) > 1e-9 {
				t.Errorf("to %d loaders, %.2f times as fast, want %d and %.2f",
					m.ToLoaders, m.SpeedRatio, test.wantTo, test.wantGain)
			}
		})
	}
}
