package shares_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"
)

// Two equal jobs share 30 CPUs of which one can hold 20: no policy moves them to and fro because
// their epochs scatter.
func TestPlan_IsSteadyForEqualJobs(t *testing.T) {
	wideOnce.Do(func() { wideRegressors = advisortest.Load(t, fitWide) })
	const epochs, most = 400, 8 // a tenth of the 1,000 epochs pass after each move
	for _, objective := range shares.Objectives() {
		random := rand.New(rand.NewPCG(22, 9))
		c := newElasticClusterOf(t, wideNode, wideRegressors, schemas.CPUs{10, 20})
		cpus, ids := map[string]uint32{}, []string{"a", "b"}
		for _, id := range ids {
			c.run(id, week, 10)
			cpus[id] = 10
		}
		moves := 0
		for n := range uint32(epochs) {
			c.now = c.now.Add(1500 * time.Millisecond)
			for _, id := range ids {
				e := advisortest.EpochEvent(id, 1, n+1)
				e.At, e.CPUs, e.Epochs, e.Nodes, e.NodeCores = c.now, cpus[id], 1000, []string{"node-a"}, wideNode.Cores
				e.DurationSeconds = 15 / float64(cpus[id]) * math.Exp(.1*random.NormFloat64())
				e.Loss = new(math.Exp(-float64(n)/100 + .02*random.NormFloat64()))
				c.apply(e)
			}
			pool := shares.PoolOf(c.Cluster, "node-a", c.now)
			pool.Capacity, pool.Objective = 30, objective
			for _, p := range pool.Plan(c.r, c.now) {
				cpus[p.Question.JobID] = p.Move.ToCPUs
				moves++
			}
		}
		t.Logf("%s: %d moves", objective, moves)
		if moves > most {
			t.Errorf("%s: %d moves in %d epochs of two equal jobs, want at most %d", objective, moves, epochs, most)
		}
	}
}
