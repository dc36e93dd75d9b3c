package shares_test

import (
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"
)

// usedEpochs are epochs of a job with CPUs of which it uses a part. pressure is the part of the time in
// which it waits for one.
type usedEpochs struct {
	id             string
	slo            time.Duration
	cpus           uint32
	used, pressure float64
}

// runEpochs applies the start and three epochs of each job.
func (c *elasticCluster) runEpochs(all []usedEpochs) {
	c.t.Helper()
	for _, j := range all {
		c.run(j.id, j.slo, j.cpus)
	}
	for n := range uint32(3) {
		c.now = c.now.Add(1500 * time.Millisecond)
		for _, j := range all {
			e := advisortest.EpochEvent(j.id, 1, n+1)
			e.At, e.DurationSeconds, e.CPUs, e.Epochs = c.now, 1.5, j.cpus, 1000
			e.Nodes, e.NodeCores = []string{"node-a"}, c.node.Cores
			cpuSeconds := j.used * float64(j.cpus) * e.DurationSeconds
			e.JobCPUSeconds, e.JobCPUPressureRatio = &cpuSeconds, &j.pressure
			c.apply(e)
		}
	}
}

// CPUs that a job does not use go to jobs that they make faster, and stay free if there are none. Nothing
// is known from runs that have ended: the model is another one.
func TestPlan_MovesForTheEfficiency(t *testing.T) {
	for _, test := range []struct {
		name string
		jobs []usedEpochs
		want string
	}{
		{
			"a job that uses its only CPU gets one of a job that cannot use it",
			[]usedEpochs{{"a", 0, 2, 1, 0}, {"b", 0, 2, 0.1, 0}},
			"[a left_over 2→4, grow b saved 2→1, surplus]",
		},
		{
			"CPUs that help no job stay free",
			[]usedEpochs{{"a", 0, 4, 0.1, 0}},
			"[a saved 4→1, surplus]",
		},
		{
			"jobs with more threads than the node has CPUs take turns less",
			[]usedEpochs{{"a", 0, 4, 0.5, 0.9}, {"b", 0, 4, 0.5, 0.9}},
			"[a lent 4→2, yield b lent 4→2, yield]",
		},
		{
			"a job alone on the node that waits for CPUs of other work",
			[]usedEpochs{{"a", 0, 4, 0.5, 0.9}},
			"[]",
		},
		{
			"jobs that use all of their CPUs share them evenly",
			[]usedEpochs{{"a", 0, 2, 1, 0}, {"b", 0, 2, 1, 0}},
			"[]",
		},
		{
			"a promised job keeps what its promise rests on",
			[]usedEpochs{{"a", 0, 2, 1, 0}, {"b", 220 * time.Second, 2, 0.1, 0}},
			"[]",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newGrowingCluster(t)
			c.runEpochs(test.jobs)
			if got := fmt.Sprint(c.moves(4, shares.ObjectiveEfficiency)); got != test.want {
				t.Errorf("moves %v, want %v", got, test.want)
			}
			for _, p := range shares.PoolOf(c.Cluster, "node-a", c.now).Plan(c.r, c.now) {
				if p.Move.Bottleneck == "" && test.jobs[0].used > 0.85 {
					t.Errorf("%+v names no bottleneck, want %s", p.Move, schemas.BottleneckCPU)
				}
			}
		})
	}
}
