package shares_test

import (
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// losses publishes an epoch with each loss, 1.5 s apart, and returns with the time of the last one.
func (c *elasticCluster) losses(id string, cpus uint32, losses ...float64) {
	c.t.Helper()
	for i := range losses {
		at := c.now.Add(time.Duration(i-len(losses)+1) * 1500 * time.Millisecond)
		e := advisortest.EpochEvent(id, 1, uint32(i+1))
		e.At, e.DurationSeconds, e.CPUs, e.Epochs, e.Nodes = at, 1.5, cpus, 1000, []string{"node-a"}
		e.Loss = &losses[i]
		c.sequence++
		c.Apply(e, c.sequence, at)
	}
}

// moves returns the planned moves of a node with some CPUs as text.
func (c *elasticCluster) moves(capacity int, objective string) (moves []string) {
	c.t.Helper()
	s := shares.PoolOf(c.Cluster, "node-a", c.now)
	s.Capacity, s.Objective = capacity, objective
	for _, p := range s.Plan(c.r, c.now) {
		moves = append(moves, fmt.Sprintf("%s %s %d→%d, %s", p.Question.JobID, p.Move.Purpose,
			p.Move.FromCPUs, p.Move.ToCPUs, p.Move.Rule))
		a := shares.DecideMove(p.Question, p.Move, c.r, c.now)
		a.EventID = schemas.AdviceID(p.Question.JobID, c.sequence)
		if err := a.Validate(); err != nil {
			c.t.Error(err)
		}
	}
	return moves
}

const week = 7 * 24 * time.Hour

// lossJob is a running job that reports losses.
type lossJob struct {
	id      string
	slo     time.Duration
	cpus    uint32
	losses  []float64     // nil: none
	isMute  bool          // its epochs have no losses
	silence time.Duration // after the last report
}

func (c *elasticCluster) runWithLosses(j *lossJob) {
	c.run(j.id, j.slo, j.cpus)
	c.losses(j.id, j.cpus, j.losses...)
	for n := uint32(1); j.isMute && n <= 3; n++ {
		e := advisortest.EpochEvent(j.id, 1, n)
		e.At, e.DurationSeconds, e.CPUs, e.Epochs, e.Nodes = c.now, 1.5, j.cpus, 1000, []string{"node-a"}
		c.apply(e)
	}
	c.now = c.now.Add(j.silence)
}

// With the objective quality, the third CPU goes to the job whose loss falls fastest.
func TestPlan_MovesForTheQuality(t *testing.T) {
	falling, flat := []float64{2, 1.6, 1.3, 1}, []float64{0.5, 0.5, 0.5, 0.5}
	young := lossJob{id: "young", slo: week, cpus: 1, losses: falling}
	for _, test := range []struct {
		name string
		jobs []lossJob
		want []string
	}{
		{
			"a growing job gets the free CPU",
			[]lossJob{{id: "done", slo: week, cpus: 1, losses: flat}, young},
			[]string{"young left_over 1→2, growing"},
		},
		{
			"a job that no longer grows gives it up",
			[]lossJob{{id: "done", slo: week, cpus: 2, losses: flat}, young},
			[]string{"done lent 2→1, completing", "young left_over 1→2, growing"},
		},
		{
			"unless its SLO needs it",
			[]lossJob{{id: "done", slo: 1350 * time.Second, cpus: 2, losses: flat}, young}, // 1,500 s with one CPU
			nil,
		},
		{
			"jobs that grow as fast per CPU keep what they have",
			[]lossJob{{id: "a", slo: week, cpus: 2, losses: []float64{2, 1.8, 1.6, 1}}, young},
			nil,
		},
		{
			"a newcomer counts as the fastest",
			[]lossJob{
				{id: "done", slo: week, cpus: 2, losses: []float64{2, 1.6, 1.6, 1.6}},
				{id: "new", slo: week, cpus: 1},
			},
			[]string{"done lent 2→1, completing", "new left_over 1→2, newcomer"},
		},
		{
			"a silent job keeps its CPUs",
			[]lossJob{{id: "silent", slo: week, cpus: 2, losses: flat, silence: time.Minute}, young},
			nil,
		},
		{
			"a job without losses keeps its CPUs",
			[]lossJob{{id: "mute", slo: week, cpus: 2, isMute: true}, young},
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			for i := range test.jobs {
				c.runWithLosses(&test.jobs[i])
			}
			if diff := cmp.Diff(test.want, c.moves(3, shares.ObjectiveQuality)); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

// With the objective cost, a job holds the fewest CPUs that its SLO needs. Two CPUs need as many
// core-seconds as one.
func TestPlan_MovesForTheCost(t *testing.T) {
	for _, test := range []struct {
		name string
		slo  time.Duration
		cpus uint32
		want []string
	}{
		{"a job with slack gives up a CPU", 3 * time.Hour, 2, []string{"a saved 2→1, least cost"}},
		{"and gets no free one", 3 * time.Hour, 1, nil},
		{"a job at risk gets it", 1000 * time.Second, 1, []string{"a at_risk 1→2, share"}},
		{"and keeps it", 1000 * time.Second, 2, nil},
		{"a job without an SLO gives up a CPU", 0, 2, []string{"a saved 2→1, least cost"}},
		{"a lost job, too", 100 * time.Second, 2, []string{"a saved 2→1, least cost"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newElasticCluster(t)
			c.run("a", test.slo, test.cpus)
			if diff := cmp.Diff(test.want, c.moves(2, shares.ObjectiveCost)); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}
