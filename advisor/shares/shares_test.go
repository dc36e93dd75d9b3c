package shares_test

import (
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// elasticCluster is a node with elastic jobs.
type elasticCluster struct {
	*cluster.Cluster
	t        testing.TB
	r        decide.Regressors
	now      time.Time
	sequence uint64
	node     schemas.Hardware
	cpus     schemas.CPUs // of each request
}

func newElasticCluster(t testing.TB) *elasticCluster {
	t.Helper()
	return newElasticClusterOf(t, advisortest.Small, advisortest.Load(t, advisortest.FitTwoCores), schemas.CPUs{1, 2})
}

func newElasticClusterOf(
	t testing.TB, node schemas.Hardware, r decide.Regressors, cpus schemas.CPUs,
) *elasticCluster {
	t.Helper()
	c := &elasticCluster{
		Cluster: cluster.New(),
		t:       t,
		r:       r,
		now:     time.Unix(1_790_000_000, 0).UTC(),
		node:    node,
		cpus:    cpus,
	}
	c.apply(advisortest.SampleOf("node-a", node, func(s *schemas.Sample) { s.At = c.now }))
	return c
}

func (c *elasticCluster) apply(e schemas.Event) {
	c.sequence++
	c.Apply(e, c.sequence, c.now)
}

// request returns the request of an elastic job of 1,000 epochs.
func (c *elasticCluster) request(id string, slo time.Duration) schemas.JobRequest {
	q := schemas.JobRequest{
		JobID: id, Model: advisortest.Model, CPUs: c.cpus, Elastic: true, BatchSizes: []int{16},
		Epochs: 1000, SLO: schemas.Duration(slo), Nodes: []string{"node-a"},
	}
	return q.WithDefaults()
}

// run submits a job and starts it with a number of CPUs.
func (c *elasticCluster) run(id string, slo time.Duration, cpus uint32) {
	c.t.Helper()
	q := c.request(id, slo)
	advice := decide.Decide(decide.Ask(c.Cluster, q, c.now), c.r, c.now)
	submitted := &schemas.Submitted{Request: q, Advice: *advice}
	submitted.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: id + "/submitted", At: c.now}, JobID: id,
	}
	c.apply(submitted)
	started := advisortest.StartedEvent(id, 1)
	started.At, started.CPUs, started.Epochs, started.Nodes = c.now, cpus, 1000, []string{"node-a"}
	started.NodeCores, started.Moves = c.node.Cores, []string{schemas.MoveCPUs}
	c.apply(started)
}

// lend starts a job with two CPUs, of which it has lent one since its first epoch. The job that
// borrowed it has ended.
func (c *elasticCluster) lend(id string, epoch uint32) {
	c.t.Helper()
	c.run(id, 4000*time.Second, 2)
	c.run("neighbour", 4000*time.Second, 1)
	e := advisortest.EpochEvent(id, 1, epoch)
	e.At, e.DurationSeconds, e.CPUs, e.Epochs, e.Nodes = c.now, 1.5, 1, 1000, []string{"node-a"}
	c.apply(e)
	ended := advisortest.FinishedEvent("neighbour", 1)
	ended.At, ended.CPUs, ended.Epochs, ended.Nodes = c.now, 1, 1000, []string{"node-a"}
	c.apply(ended)
}

// foreign measures a node of which foreign work uses a share of the CPUs, and job a next to nothing.
func (c *elasticCluster) foreign(share float64, cpus uint32) {
	c.t.Helper()
	idle, seconds := 0.0, 1.5/float64(cpus)
	e := advisortest.EpochEvent("a", 1, 2)
	e.At, e.DurationSeconds, e.DurationSource = c.now, seconds, schemas.DurationArrival
	e.CPUs, e.Epochs, e.Nodes, e.JobCPUSeconds = cpus, 1000, []string{"node-a"}, &idle
	c.apply(e)
	for range 60 {
		c.now = c.now.Add(5 * time.Second)
		c.apply(advisortest.SampleOf("node-a", advisortest.Small, func(s *schemas.Sample) {
			s.At, s.CPURatio, s.IntervalSeconds = c.now, &share, 5
		}))
	}
}

// plan returns the planned moves as text.
func (c *elasticCluster) plan() (moves []string) {
	c.t.Helper()
	pool := shares.PoolOf(c.Cluster, "node-a", c.now)
	if pool == nil {
		return nil
	}
	for _, p := range pool.Plan(c.r, c.now) {
		moves = append(moves, fmt.Sprintf("%s %s %d→%d for %q",
			p.Question.JobID, p.Move.Purpose, p.Move.FromCPUs, p.Move.ToCPUs, p.Move.ForJob))
	}
	return moves
}

// A job at risk gets no more CPUs while it waits for its storage.
func TestPlan_LeavesAStarvedJob(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	for _, test := range []struct {
		name             string
		used, ioPressure float64
		want             string
	}{
		{"busy CPU", 1.4, 0, `[a at_risk 1→2 for ""]`},
		{"busy CPU and waits for storage", 1.4, 0.4, `[a at_risk 1→2 for ""]`},
		{"waits for storage", 0.6, 0.4, `[]`},
	} {
		c := newElasticCluster(t)
		c.run("a", 1000*time.Second, 1)
		for n := range 3 {
			c.now = c.now.Add(1500 * time.Millisecond)
			e := advisortest.EpochEvent("a", 1, uint32(n+1))
			e.At, e.DurationSeconds, e.CPUs, e.Epochs = c.now, 1.5, 1, 1000
			e.Nodes = []string{"node-a"}
			e.JobCPUSeconds, e.JobIOPressureRatio = value(test.used), value(test.ioPressure)
			c.apply(e)
		}
		if got := fmt.Sprint(c.plan()); got != test.want {
			t.Errorf("%s: moves %v, want %v", test.name, got, test.want)
		}
	}
}

// An epoch takes 1.5 s with one CPU and 0.75 s with two, if nothing else runs.
func TestPlan_MovesCPUsBetweenElasticJobs(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(c *elasticCluster)
		want []string
	}{
		{
			"a job at risk gets the free CPU",
			func(c *elasticCluster) { c.run("a", 1000*time.Second, 1) },
			[]string{`a at_risk 1→2 for ""`},
		},
		{
			"a job that is in time gets it, too",
			func(c *elasticCluster) { c.run("a", 3*time.Hour, 1) },
			[]string{`a left_over 1→2 for ""`},
		},
		{
			"a job with slack lends a CPU to a new one",
			func(c *elasticCluster) {
				c.run("a", 4000*time.Second, 2)
				c.run("b", 2500*time.Second, 1)
			},
			[]string{`a lent 2→1 for ""`},
		},
		{
			"a job with slack lends a CPU to one at risk",
			func(c *elasticCluster) {
				c.run("a", 3*time.Hour, 1)
				c.run("b", 2000*time.Second, 1)
			},
			nil, // both hold the fewest CPUs that they may
		},
		{
			"a job without slack lends nothing",
			func(c *elasticCluster) {
				c.run("a", 1250*time.Second, 2) // 1,500 s with one CPU
				c.run("b", 4*time.Hour, 1)
			},
			nil,
		},
		{
			"a job gets back what it lent",
			func(c *elasticCluster) { c.lend("a", 1) },
			[]string{`a returned 1→2 for ""`},
		},
		{
			"a job gets back what it lent, although other work uses a part of a CPU",
			func(c *elasticCluster) {
				c.lend("a", 1)
				c.foreign(0.4, 1)
			},
			[]string{`a returned 1→2 for ""`},
		},
		{
			"a job that is alone lends nothing to a part of a CPU",
			func(c *elasticCluster) {
				c.run("a", 4000*time.Second, 2)
				c.foreign(0.4, 2)
			},
			nil,
		},
		{
			"a job with slack makes room for other work that uses a CPU",
			func(c *elasticCluster) {
				c.run("a", 4000*time.Second, 2)
				c.foreign(0.5, 2)
			},
			[]string{`a foreign_load 2→1 for ""`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			test.run(c)
			if diff := cmp.Diff(test.want, c.plan()); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that was admitted because another one lends it a CPU gets that, although nothing was measured
// with more processes than CPUs, which run until then.
func TestPlan_LendsCPUsOfAnUnknownOverload(t *testing.T) {
	c := newElasticCluster(t)
	// Measurements with at most one process for each CPU.
	c.r = advisortest.Load(t, advisortest.FitShared(advisortest.Small, []uint32{1, 2}, []float64{0, 1, 2, 3, 4}, 2))
	c.run("a", 4000*time.Second, 2)
	c.run("b", 2500*time.Second, 1)
	if diff := cmp.Diff([]string{`a lent 2→1 for ""`}, c.plan()); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	p := shares.PoolOf(c.Cluster, "node-a", c.now).Plan(c.r, c.now)[0]
	a := shares.DecideMove(p.Question, p.Move, c.r, c.now)
	a.EventID = schemas.AdviceID("a", 1)
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
}

// The objective chooses which job gets the third CPU: the one at risk, or the one that ends first. The
// promise of a job holds under both.
func TestPlan_MovesForTheObjective(t *testing.T) {
	for _, test := range []struct {
		name, objective string
		long            time.Duration // SLO of the long job, which runs for 1,500 s with one CPU
		want            []string
	}{
		{"SLOs", shares.ObjectiveSLO, 1250 * time.Second, []string{`long at_risk 1→2 for ""`}},
		{"completion times", shares.ObjectiveJCT, 3 * time.Hour, []string{`short left_over 1→2 for ""`}},
		{"completion times beside an SLO at risk", shares.ObjectiveJCT, 1250 * time.Second,
			[]string{`long at_risk 1→2 for ""`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			c.run("long", test.long, 1)
			c.run("short", 3*time.Hour, 1)
			done := advisortest.EpochEvent("short", 1, 900)
			done.At, done.DurationSeconds, done.CPUs, done.Epochs, done.Nodes = c.now, 1.5, 1, 1000, []string{"node-a"}
			c.apply(done)
			s := shares.PoolOf(c.Cluster, "node-a", c.now)
			s.Capacity, s.Objective = 3, test.objective
			var moves []string
			for _, p := range s.Plan(c.r, c.now) {
				moves = append(moves, fmt.Sprintf("%s %s %d→%d for %q",
					p.Question.JobID, p.Move.Purpose, p.Move.FromCPUs, p.Move.ToCPUs, p.Move.ForJob))
			}
			if diff := cmp.Diff(test.want, moves); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

// The queue admits a job at once if a running one can lend it a CPU. With three processes on two
// cores the new job would miss its SLO.
func TestMakeRoom_LendsCPUsToANewJob(t *testing.T) {
	c := newElasticCluster(t)
	c.run("old", 2000*time.Second, 2)
	q := c.request("new", 1700*time.Second)
	q.CPUs, q.Elastic = schemas.CPUs{1}, false
	question := decide.Ask(c.Cluster, q, c.now)
	if a := decide.Decide(question, c.r, c.now); a.Decision != schemas.BestEffort {
		t.Fatalf("without a loan: %s: %s; want best_effort", a.Decision, a.Message)
	}
	a := shares.PoolOf(c.Cluster, "node-a", c.now).MakeRoom(question, c.r, c.now)
	if a == nil {
		t.Fatal("no room, want a loan of one CPU")
	}
	want := []schemas.Loan{{JobID: "old", FromCPUs: 2, ToCPUs: 1}}
	if diff := cmp.Diff(want, a.Admission.Loans); diff != "" {
		t.Errorf("loans (-want +got):\n%s", diff)
	}
	if a.Decision != schemas.MeetsSLO || a.Chosen.CPUs != 1 {
		t.Errorf("advice = %s with %d CPUs, want meets_slo with 1", a.Decision, a.Chosen.CPUs)
	}
	again := decide.Decide(question.AssumeMoves(a), c.r, c.now)
	if *again.Chosen.Probability != *a.Chosen.Probability {
		t.Errorf("repeated probability = %v, want %v", *again.Chosen.Probability, *a.Chosen.Probability)
	}

	q = c.request("late", 700*time.Second) // less than the work with two CPUs
	pool := shares.PoolOf(c.Cluster, "node-a", c.now)
	if a := pool.MakeRoom(decide.Ask(c.Cluster, q, c.now), c.r, c.now); a != nil {
		t.Errorf("room for a job that cannot meet its SLO: %s", a.Message)
	}
}

// An elastic job without a promise starts on free CPUs only, but foreign load does not keep it from an
// idle node.
func TestAdmit_WaitsForFreeCPUs(t *testing.T) {
	for _, test := range []struct {
		name     string
		capacity int
		running  []uint32 // CPUs of the running jobs
		want     uint32   // granted; 0: the job waits
	}{
		{"an idle node", 2, nil, 2},
		{"an idle node under foreign load", 0, nil, 1},
		{"a free CPU", 2, []uint32{1}, 1},
		{"no free CPU", 2, []uint32{1, 1}, 0},
		{"no CPU for a job that holds more", 1, []uint32{1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			for i, n := range test.running {
				c.run(fmt.Sprint("running-", i), 100*time.Second, n) // lost: it never meets its SLO
			}
			s := shares.PoolOf(c.Cluster, "node-a", c.now)
			s.Capacity = test.capacity
			q := c.request("new", 700*time.Second) // less than the work with two CPUs
			got := uint32(0)
			if a := s.Admit(decide.Ask(c.Cluster, q, c.now), c.r, c.now); a != nil {
				got = a.Chosen.CPUs
			}
			if got != test.want {
				t.Errorf("granted CPUs: got %d, want %d", got, test.want)
			}
		})
	}
}

// The answer to an elastic job lists the numbers of CPUs that it does not get, with their figures and
// the reason, whether it is promised its SLO or not. A replay repeats it.
func TestAdmit_ListsTheCPUsThatAreNotGranted(t *testing.T) {
	const tooMany = "more CPUs than other jobs and other work leave for it now"
	for _, test := range []struct {
		name     string
		slo      time.Duration
		capacity int
		decision schemas.Decision
		want     map[uint32]string // reasons by CPUs; those of the granted ones are left out
	}{
		{"a promise under foreign load", time.Hour, 1, schemas.MeetsSLO, map[uint32]string{2: tooMany}},
		{"no promise under foreign load", 700 * time.Second, 1, schemas.BestEffort,
			map[uint32]string{2: tooMany}},
		{"an idle node", time.Hour, 2, schemas.MeetsSLO,
			map[uint32]string{1: "fewer CPUs than the job gets now"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			s := shares.PoolOf(c.Cluster, "node-a", c.now)
			s.Capacity = test.capacity
			question := decide.Ask(c.Cluster, c.request("new", test.slo), c.now)
			a := s.Admit(question, c.r, c.now)
			if a == nil || a.Decision != test.decision {
				t.Fatalf("advice = %+v, want %s", a, test.decision)
			}
			a.EventID = schemas.AdviceID("new", 1)
			if err := a.Validate(); err != nil {
				t.Error(err)
			}
			got := map[uint32]string{}
			for _, alt := range a.Alternatives {
				if alt.PredictedSeconds == nil || alt.Probability == nil {
					t.Errorf("%d CPUs have no figures: %+v", alt.CPUs, alt)
				}
				if alt.CPUs != a.Chosen.CPUs {
					got[alt.CPUs] = alt.Reason
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reasons of other CPUs (-want +got):\n%s", diff)
			}

			again := decide.Decide(question.AssumeMoves(a), c.r, c.now)
			if diff := cmp.Diff(a.Alternatives, again.Alternatives); diff != "" {
				t.Errorf("repeated alternatives (-recorded +repeated):\n%s", diff)
			}
		})
	}
}

// An advice to move predicts both numbers of CPUs.
func TestDecideMove_ComparesBothNumbersOfCPUs(t *testing.T) {
	c := newElasticCluster(t)
	c.run("a", 1000*time.Second, 1)
	p := shares.PoolOf(c.Cluster, "node-a", c.now).Plan(c.r, c.now)[0]
	a := shares.DecideMove(p.Question, p.Move, c.r, c.now)
	a.EventID = schemas.AdviceID("a", 1)
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	unmoved := a.Running(16, 1)
	if a.Action != schemas.ActionCPUs || a.Chosen.CPUs != 2 || unmoved == nil ||
		*a.Chosen.PredictedSeconds >= *unmoved.PredictedSeconds {
		t.Errorf("advice = %+v, want two CPUs and the longer time with one", a)
	}
}
