package shares_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"
)

// fourCores is a node whose jobs ran with one or two CPUs and may have four.
var fourCores = schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}

var fitFour = advisortest.FitShared(fourCores, []uint32{1, 2}, []float64{0, 1, 2, 3, 4}, 6)

// newGrowingCluster returns a node with four cores, whose jobs have run with one CPU or two before.
func newGrowingCluster(t *testing.T) *elasticCluster {
	t.Helper()
	return newElasticClusterOf(t, fourCores, advisortest.Load(t, fitFour), schemas.CPUs{1, 2, 4})
}

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
			e.JobCPUSeconds, e.JobCPUPressureRatio = new(j.used*float64(j.cpus)*e.DurationSeconds), &j.pressure
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
			"the only CPU of a job that hardly uses it counts as free",
			[]usedEpochs{{"a", 0, 2, 1, 0}, {"b", 0, 1, 0.1, 0.2}},
			"[a left_over 2→4, grow]",
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
				isBusy := p.Question.JobID == "a" && test.jobs[0].used > 0.85
				if isBusy && p.Move.Bottleneck == "" {
					t.Errorf("%+v names no bottleneck, want %s", p.Move, schemas.BottleneckCPU)
				}
			}
		})
	}
}

// The advice of a move to CPUs that no run ever had has predicted times, so that the runner can assess
// it, but promises nothing.
func TestDecideMove_PromisesNothingByOwnEpochs(t *testing.T) {
	c := newGrowingCluster(t)
	c.runEpochs([]usedEpochs{{"a", 0, 2, 1, 0}})
	pool := shares.PoolOf(c.Cluster, "node-a", c.now)
	pool.Objective = shares.ObjectiveEfficiency
	planned := pool.Plan(c.r, c.now)
	if len(planned) != 1 {
		t.Fatalf("%d moves, want 1", len(planned))
	}
	a := shares.DecideMove(planned[0].Question, planned[0].Move, c.r, c.now)
	chosen, without := a.Chosen, a.Running(16, 2)
	if chosen.CPUs != 4 || !chosen.Extrapolated || chosen.UpperBoundSeconds != nil || chosen.Probability != nil {
		t.Errorf("chosen %+v, want 4 CPUs without a promise", chosen)
	}
	ratio := *without.PredictedSeconds / *chosen.PredictedSeconds
	if ratio < 1.1 || ratio > 2 || !strings.Contains(a.Message, "faster by its own epochs") {
		t.Errorf("speed ratio %.2f, message %q", ratio, a.Message)
	}
}

var fitAlone = advisortest.FitShared(fourCores, []uint32{1, 2}, []float64{0}, 2)

// A job whose model ran only alone is not at risk beside another one: its chance is unknown.
func TestPlan_DoesNotTakeTheUnknownForARisk(t *testing.T) {
	c := newElasticClusterOf(t, fourCores, advisortest.Load(t, fitAlone), schemas.CPUs{1, 2, 4})
	c.run("a", week, 2)
	c.run("b", week, 1)
	c.busyEpochs("a", 1, 2, 1)
	if got := fmt.Sprint(c.moves(5, shares.ObjectiveEfficiency)); got != "[a left_over 2→4, grow]" {
		t.Errorf("moves %v, want one with CPUs that are left over", got)
	}
}

// A job on one CPU gets a second one by its own epochs, although its model ran with two CPUs only: its epochs
// correct the prediction for two, as if the job were slow and not short of CPUs.
func TestPlan_GrowsAlthoughOnlyMoreCPUsAreKnown(t *testing.T) {
	fit := advisortest.FitShared(advisortest.Small, []uint32{2}, []float64{0}, 2)
	c := newElasticClusterOf(t, advisortest.Small, advisortest.Load(t, fit), schemas.CPUs{1, 2})
	c.run("a", 0, 1)
	c.busyEpochs("a", 1, 1, 1)
	if got := fmt.Sprint(c.moves(2, shares.ObjectiveEfficiency)); got != "[a left_over 1→2, grow]" {
		t.Fatalf("moves %v, want one with the free CPU", got)
	}
	pool := shares.PoolOf(c.Cluster, "node-a", c.now)
	pool.Objective = shares.ObjectiveEfficiency
	p := pool.Plan(c.r, c.now)[0]
	a := shares.DecideMove(p.Question, p.Move, c.r, c.now)
	if without := a.Running(16, 1); *a.Chosen.PredictedSeconds > 0.8**without.PredictedSeconds {
		t.Errorf("predicted are %.0f s instead of %.0f s, want less than 0.8 of it",
			*a.Chosen.PredictedSeconds, *without.PredictedSeconds)
	}
}
