package shares_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/policy"
	"courier/schemas"
)

// fourCores is a node on which jobs that ran with one or two CPUs may grow to four.
var fourCores = schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}

var fitFour = advisortest.FitShared(fourCores, []uint32{1, 2}, []float64{0, 1, 2, 3, 4}, 6)

// newGrowingCluster returns a node with four cores, whose jobs have run with one CPU or two before.
func newGrowingCluster(t *testing.T) *elasticCluster {
	t.Helper()
	return newElasticClusterOf(t, fourCores, advisortest.Load(t, fitFour), schemas.CPUs{1, 2, 4})
}

// busyEpochs applies three epochs of a job that uses a part of its CPUs.
func (c *elasticCluster) busyEpochs(id string, first, cpus uint32, used float64) {
	c.t.Helper()
	for n := range uint32(3) {
		c.now = c.now.Add(1500 * time.Millisecond)
		c.apply(advisortest.SampleOf("node-a", c.node, func(s *schemas.Sample) {
			ratio := used * float64(cpus) / float64(c.node.Cores)
			s.At, s.CPURatio, s.IntervalSeconds = c.now, &ratio, 1.5
		}))
		e := advisortest.EpochEvent(id, 1, first+n)
		e.At, e.DurationSeconds, e.CPUs, e.Epochs = c.now, 1.5, cpus, 1000
		e.Nodes = []string{"node-a"}
		e.NodeCores = c.node.Cores
		cpuSeconds := used * float64(cpus) * e.DurationSeconds
		e.JobCPUSeconds = &cpuSeconds
		c.apply(e)
	}
}

// carriedOut applies the event of a move by the job's own epochs.
func (c *elasticCluster) carriedOut(id string, from, to uint32) {
	c.t.Helper()
	e := &schemas.Moved{
		Move: schemas.MoveCPUs, Outcome: schemas.MoveCarriedOut, Means: schemas.ByCap,
		FromCPUs: from, ToCPUs: to, Purpose: schemas.MoveLeftOver, Rule: string(policy.ReasonOwnEpochs),
	}
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: fmt.Sprint(id, "/moved/", to), At: c.now}, JobID: id, Run: 1,
	}
	c.apply(e)
}

// No model ran with four CPUs. A job with two that uses both is predicted to be faster with four, by
// its own epochs, and gets them if nobody else needs them.
func TestPlan_GrowsByOwnEpochs(t *testing.T) {
	grows := "[a left_over 2→4, own epochs]"
	for _, test := range []struct {
		name string
		run  func(c *elasticCluster)
		want string
	}{
		{"a job without an SLO", func(c *elasticCluster) { c.run("a", 0, 2); c.busyEpochs("a", 1, 2, 1) }, grows},
		{
			"a job that will miss its SLO",
			func(c *elasticCluster) { c.run("a", 400*time.Second, 2); c.busyEpochs("a", 1, 2, 1) },
			"[a at_risk 2→4, own epochs]",
		},
		{
			"a job whose SLO is promised keeps what the promise rests on",
			func(c *elasticCluster) { c.run("a", week, 2); c.busyEpochs("a", 1, 2, 1) },
			"[]",
		},
		{
			"a job that hardly uses its CPUs",
			func(c *elasticCluster) { c.run("a", 0, 2); c.busyEpochs("a", 1, 2, 0.5) },
			"[]",
		},
		{"a job without three epochs", func(c *elasticCluster) { c.run("a", 0, 2) }, "[]"},
		{
			"a node without two free CPUs",
			func(c *elasticCluster) {
				c.run("a", 0, 2)
				c.run("b", 0, 2)
				c.busyEpochs("a", 1, 2, 1)
			},
			"[]",
		},
		{
			"a job that was undone keeps its CPUs",
			func(c *elasticCluster) {
				c.run("a", 0, 2)
				c.busyEpochs("a", 1, 2, 1)
				e := &schemas.Moved{Move: schemas.MoveCPUs, Outcome: schemas.MoveUndone, FromCPUs: 2, ToCPUs: 4}
				e.JobStamp = schemas.JobStamp{
					Stamp: schemas.Stamp{EventID: "a/undone", At: c.now}, JobID: "a", Run: 1,
				}
				c.apply(e)
			},
			"[]",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newGrowingCluster(t)
			test.run(c)
			if got := fmt.Sprint(c.moves(4, shares.ObjectiveSLO)); got != test.want {
				t.Errorf("moves %v, want %v", got, test.want)
			}
			if got := c.moves(4, shares.ObjectiveCost); len(got) > 0 && strings.Contains(got[0], "own") {
				t.Errorf("moves for the cost %v, want none by own epochs", got)
			}
		})
	}
}

var fitAlone = advisortest.FitShared(fourCores, []uint32{1, 2}, []float64{0}, 2)

// A job whose model ran only alone is not at risk beside another one: its chance is unknown.
func TestPlan_DoesNotTakeTheUnknownForARisk(t *testing.T) {
	c := newElasticClusterOf(t, fourCores, advisortest.Load(t, fitAlone), schemas.CPUs{1, 2, 4})
	c.run("a", week, 2)
	c.run("b", week, 1)
	c.busyEpochs("a", 1, 2, 1)
	if got := fmt.Sprint(c.moves(5, shares.ObjectiveSLO)); got != "[a left_over 2→4, own epochs]" {
		t.Errorf("moves %v, want one with CPUs that are left over", got)
	}
}

// The advice of such a move has predicted times, so that the runner can assess it, but promises
// nothing.
func TestDecideMove_PromisesNothingByOwnEpochs(t *testing.T) {
	c := newGrowingCluster(t)
	c.run("a", 0, 2)
	c.busyEpochs("a", 1, 2, 1)
	planned := shares.PoolOf(c.Cluster, "node-a", c.now).Plan(c.r, c.now)
	if len(planned) != 1 {
		t.Fatalf("%d moves, want 1", len(planned))
	}
	a := shares.DecideMove(planned[0].Question, planned[0].Move, c.r, c.now)
	chosen, without := a.Chosen, a.Running(16, 2)
	if chosen.CPUs != 4 || !chosen.Extrapolated || chosen.UpperBoundSeconds != nil || chosen.Probability != nil {
		t.Errorf("chosen %+v, want 4 CPUs without a promise", chosen)
	}
	ratio := *without.PredictedSeconds / *chosen.PredictedSeconds
	if ratio < 1.1 || ratio > 2 || !strings.Contains(a.Message, "its own epochs predict") {
		t.Errorf("speed ratio %.2f, message %q", ratio, a.Message)
	}
}

// What a job has got by its own epochs is free for any other job: it returns these CPUs, and keeps
// those from before.
func TestPlan_ReturnsWhatAJobHasGrownBy(t *testing.T) {
	c := newGrowingCluster(t)
	c.run("a", 0, 2)
	c.busyEpochs("a", 1, 2, 1)
	c.busyEpochs("a", 4, 4, 1)
	c.carriedOut("a", 2, 4)
	if got := c.moves(4, shares.ObjectiveSLO); len(got) > 0 {
		t.Errorf("moves %v, want none as long as nobody needs the CPUs", got)
	}

	node := shares.PoolOf(c.Cluster, "node-a", c.now)
	advice := node.MakeRoom(decide.Ask(c.Cluster, c.request("b", 3000*time.Second), c.now), c.r, c.now)
	if advice == nil || fmt.Sprint(advice.Admission.Loans) != "[{a 4 2}]" {
		t.Fatalf("admission %+v, want a loan of two CPUs", advice)
	}

	c.run("b", 3000*time.Second, 2)
	if got := fmt.Sprint(c.moves(4, shares.ObjectiveSLO)); got != "[a returned 4→2, yield]" {
		t.Errorf("moves %v, want the CPUs returned", got)
	}
}
