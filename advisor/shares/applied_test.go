package shares_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// movedEvent returns the outcome of a move of CPUs.
func movedEvent(id, outcome string, from, to uint32, at time.Time) *schemas.Moved {
	e := &schemas.Moved{
		Move: schemas.MoveCPUs, Outcome: outcome, Means: schemas.ByWeight,
		FromBatchSize: 16, ToBatchSize: 16, FromCPUs: from, ToCPUs: to,
	}
	stamp := schemas.Stamp{EventID: schemas.MovedID(id, 1, 1), At: at}
	e.JobStamp = schemas.JobStamp{Stamp: stamp, JobID: id, Run: 1}
	return e
}

// appliedEvent reports that the CPUs of a job changed before an epoch.
func (c *elasticCluster) appliedEvent(id string, from, to, epoch uint32) *schemas.Moved {
	e := movedEvent(id, schemas.MoveApplied, from, to, c.now)
	e.EventID, e.Epoch = fmt.Sprintf("%s/applied/%d", id, epoch), epoch
	return e
}

// epochWith returns an epoch of a job of 1,000 epochs.
func (c *elasticCluster) epochWith(id string, number, cpus uint32) *schemas.Epoch {
	e := advisortest.EpochEvent(id, 1, number)
	e.At, e.DurationSeconds, e.CPUs, e.Epochs, e.Nodes = c.now, 1.5, cpus, 1000, []string{"node-a"}
	return e
}

// cpusOf returns the present CPUs of a job.
func (c *elasticCluster) cpusOf(id string) uint32 {
	c.t.Helper()
	for _, j := range shares.PoolOf(c.Cluster, "node-a", c.now).Jobs {
		if j.Question.JobID == id {
			return j.Question.Self.Setting.CPUs
		}
	}
	c.t.Fatalf("job %s does not run", id)
	return 0
}

// restart replaces the state by that of its snapshot.
func (c *elasticCluster) restart() {
	c.t.Helper()
	var b bytes.Buffer
	if err := c.Freeze().Encode(&b); err != nil {
		c.t.Fatal(err)
	}
	restored, err := cluster.Decode(&b)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Cluster = restored
}

// CPUs count as soon as they are in effect. Duplicates, late events and other outcomes change nothing,
// and neither does a restart of the advisor.
func TestCluster_TakesAppliedCPUs(t *testing.T) {
	c := newElasticCluster(t)
	applied := c.appliedEvent
	otherRun := applied("a", 2, 1, 3)
	otherRun.Run = 2
	batch := applied("a", 2, 1, 3)
	batch.Move = schemas.MoveBatchSize
	other := func(outcome string) schemas.Event {
		e := applied("a", 2, 1, 3)
		e.Outcome = outcome
		return e
	}
	for _, test := range []struct {
		name   string
		events []schemas.Event // after two epochs with two CPUs
		want   uint32
	}{
		{"before the first epoch with them", []schemas.Event{applied("a", 2, 1, 3)}, 1},
		{
			"and their first epoch",
			[]schemas.Event{applied("a", 2, 1, 3), c.epochWith("a", 3, 1), other(schemas.MoveCarriedOut)}, 1,
		},
		{
			"undone",
			[]schemas.Event{
				applied("a", 2, 1, 3), c.epochWith("a", 5, 1), other(schemas.MoveUndone), applied("a", 1, 2, 6),
			},
			2,
		},
		{
			"after a later change",
			[]schemas.Event{c.epochWith("a", 3, 1), c.epochWith("a", 4, 2), applied("a", 2, 1, 3)}, 2,
		},
		{"without an epoch", []schemas.Event{applied("a", 2, 1, 0)}, 2},
		{"of another run", []schemas.Event{otherRun}, 2},
		{"of a batch size", []schemas.Event{batch}, 2},
		{"carried out", []schemas.Event{other(schemas.MoveCarriedOut)}, 2},
		{"kept", []schemas.Event{other(schemas.MoveKept)}, 2},
		{"undone only", []schemas.Event{other(schemas.MoveUndone)}, 2},
		{"refused", []schemas.Event{other(schemas.MoveRefused)}, 2},
		{"dry run", []schemas.Event{other(schemas.MoveDryRun)}, 2},
	} {
		for cut := range len(test.events) + 1 {
			t.Run(fmt.Sprintf("%s, restart after %d", test.name, cut), func(t *testing.T) {
				c := newElasticCluster(t)
				c.run("a", 4000*time.Second, 2)
				c.apply(c.epochWith("a", 2, 2))
				for i, e := range test.events {
					if i == cut {
						c.restart()
					}
					c.apply(e)
					c.apply(e)
				}
				if cut == len(test.events) {
					c.restart()
				}
				if got := c.cpusOf("a"); got != test.want {
					t.Errorf("%d CPUs, want %d", got, test.want)
				}
				for _, e := range test.events {
					c.apply(e) // a late copy
				}
				if got := c.cpusOf("a"); got != test.want {
					t.Errorf("%d CPUs after copies of all events, want %d", got, test.want)
				}
			})
		}
	}
}

// A job without a promise starts on CPUs that another one has given up, before an epoch of that ends.
func TestAdmit_StartsOnAppliedCPUs(t *testing.T) {
	c := newElasticCluster(t)
	c.run("old", 4000*time.Second, 2)
	admit := func() *schemas.Advice {
		node := shares.PoolOf(c.Cluster, "node-a", c.now)
		return node.Admit(decide.Ask(c.Cluster, c.request("new", 0), c.now), c.r, c.now)
	}
	if a := admit(); a != nil {
		t.Fatalf("admitted with %d CPUs, want none while old holds both", a.Chosen.CPUs)
	}
	c.apply(c.appliedEvent("old", 2, 1, 1))
	if a := admit(); a == nil || a.Chosen.CPUs != 1 {
		t.Errorf("admission %+v, want one CPU", a)
	}
}

// Until an epoch with the new CPUs ends, the previous epochs of a job that is slower than known correct
// its predictions.
func TestCluster_CorrectsPredictionsAfterAppliedCPUs(t *testing.T) {
	c := newGrowingCluster(t)
	c.run("a", 4000*time.Second, 2)
	c.busyEpochs("a", 1, 2, 1) // 1.5 s, known are 0.75 s
	ratio := func() float64 {
		q := shares.PoolOf(c.Cluster, "node-a", c.now).Jobs[0].Question
		return decide.Decide(q, c.r, c.now).EpochRatio
	}
	before := ratio()
	c.apply(c.appliedEvent("a", 2, 1, 4))
	if got := ratio(); before < 1.5 || math.Abs(got/before-1) > 1e-3 {
		t.Errorf("ratio of the epochs %.3f, want %.3f as before, above 1.5", got, before)
	}
	c.restart()
	if got := ratio(); math.Abs(got/before-1) > 1e-3 {
		t.Errorf("ratio of the epochs after a restart %.3f, want %.3f", got, before)
	}
	c.busyEpochs("a", 4, 1, 1) // as known
	if got := ratio(); got < 0.95 || got > 1.05 {
		t.Errorf("ratio of the epochs with one CPU %.3f, want about 1", got)
	}
}

// busyEpochs applies three epochs of a job that uses a part of its CPUs.
func (c *elasticCluster) busyEpochs(id string, first, cpus uint32, used float64) {
	c.t.Helper()
	for n := range uint32(3) {
		c.now = c.now.Add(1500 * time.Millisecond)
		c.apply(advisortest.SampleOf("node-a", c.node, func(s *schemas.Sample) {
			s.At, s.CPURatio, s.IntervalSeconds = c.now, new(used*float64(cpus)/float64(c.node.Cores)), 1.5
		}))
		e := advisortest.EpochEvent(id, 1, first+n)
		e.At, e.DurationSeconds, e.CPUs, e.Epochs = c.now, 1.5, cpus, 1000
		e.Nodes = []string{"node-a"}
		e.NodeCores = c.node.Cores
		e.JobCPUSeconds = new(used * float64(cpus) * e.DurationSeconds)
		c.apply(e)
	}
}

// A job that got CPUs because they make it faster gets no more before an epoch with them shows their
// effect. A job with an SLO borrows them, although no run of the model ever had so many.
func TestPlan_GrowsOnceUntilAnEpochEnds(t *testing.T) {
	c := newElasticClusterOf(t, fourCores, advisortest.Load(t, fitFour), schemas.CPUs{1, 2, 4})
	c.run("a", 0, 2)
	c.busyEpochs("a", 1, 2, 1)
	grows := "[a left_over 2→4, grow]"
	if got := fmt.Sprint(c.moves(4, shares.ObjectiveEfficiency)); got != grows {
		t.Fatalf("moves %v, want %v", got, grows)
	}
	c.apply(c.appliedEvent("a", 2, 4, 4))
	if got := c.moves(4, shares.ObjectiveEfficiency); len(got) > 0 {
		t.Errorf("moves %v, want none before an epoch with four CPUs", got)
	}
	node := shares.PoolOf(c.Cluster, "node-a", c.now)
	advice := node.MakeRoom(decide.Ask(c.Cluster, c.request("b", 3000*time.Second), c.now), c.r, c.now)
	if advice == nil || fmt.Sprint(advice.Admission.Loans) != "[{a 4 2}]" {
		t.Errorf("admission %+v, want a loan of two CPUs", advice)
	}
}
