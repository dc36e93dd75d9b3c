package live_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"
)

// eightCPUs is a node on which the speed of a job is proportional to its CPUs.
var eightCPUs = &advisortest.Node{
	Hardware:       schemas.Hardware{Cores: 8, CPUModel: "x", Speed: 1e9},
	Model:          modelName,
	BatchSize:      batchSize,
	CPUs:           []uint32{1, 2, 4, 6},
	Others:         []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
	MaxProcesses:   18,
	MaxJobs:        3,
	EpochSeconds:   func(cpus, processes float64) float64 { return 8 / cpus * max(1, processes/8) },
	StartupSeconds: 0.3,
	Accuracy:       func(epochs float64) float64 { return 1 - 0.5/epochs },
}

// flowConJobs are the jobs of courier simulate figures flowcon. Each takes its epochs in seconds on all CPUs,
// and its loss is floor + (1-floor)·exp(-done/tau).
var flowConJobs = []struct {
	arrival    time.Duration
	epochs     int
	floor, tau float64
}{
	{0, 240, 0.1, 0.08},
	{40 * time.Second, 120, 0.1, 0.12},
	{80 * time.Second, 30, 0.05, 0.35},
}

// The advisor moves CPUs to the job whose loss falls fastest: the late job of FlowCon's schedule ends
// sooner than with the objective slo, for which jobs without an SLO are alike. The makespan hardly
// grows; it does at all, because no job can use the last two CPUs.
func TestQuality_LetsTheLateJobEndSooner(t *testing.T) {
	regressors, err := eightCPUs.Fit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inVirtualTime(t, func(t *testing.T) {
		late, makespan := map[string]float64{}, map[string]float64{}
		for _, objective := range []string{shares.ObjectiveSLO, shares.ObjectiveQuality} {
			part := &scope{T: t}
			q := newQueue(part, world{"as known", 1, 0.02, 0.02, 0.3, 0}, eightCPUs)
			q.serve(advisor.Options{Policy: advisor.Policy{Objective: objective}}, regressors)
			begin := time.Now()
			took := make([]float64, len(flowConJobs))
			var all sync.WaitGroup
			for i, j := range flowConJobs {
				all.Go(func() {
					pass(j.arrival)
					submitted := time.Now()
					id := fmt.Sprint("job-", i)
					q.submit(id, j.epochs)
					lossAt := func(done float64) float64 {
						return j.floor + (1-j.floor)*math.Exp(-done/j.tau)
					}
					q.train(id, j.epochs, 2, lossAt, rand.New(rand.NewPCG(1, uint64(i))))
					took[i] = time.Since(submitted).Seconds()
				})
			}
			all.Wait()
			late[objective], makespan[objective] = took[2], time.Since(begin).Seconds()
			t.Logf("%-8s %.1f s, makespan %.1f s, %d moves", objective, took, makespan[objective], q.moves)
			part.end()
		}
		if ratio := late[shares.ObjectiveQuality] / late[shares.ObjectiveSLO]; !(ratio < 0.8) {
			t.Errorf("the late job takes %.2f of its time with the objective slo, want less than 0.8", ratio)
		}
		if ratio := makespan[shares.ObjectiveQuality] / makespan[shares.ObjectiveSLO]; !(ratio < 1.1) {
			t.Errorf("the makespan is %.2f of that with the objective slo, want less than 1.1", ratio)
		}
	})
}

// submit submits a job without an SLO, which starts at once.
func (q *queue) submit(id string, epochs int) {
	request := schemas.JobRequest{
		JobID: id, Model: modelName, CPUs: schemas.CPUs{1, 2, 4, 6}, Elastic: true,
		BatchSizes: []int{batchSize}, Epochs: epochs, Nodes: []string{nodeName},
	}
	var advice schemas.Advice
	if err := q.b.Request(context.Background(), schemas.SubjectJobSubmit, &request, &advice); err != nil {
		q.t.Errorf("%s: %v", id, err)
	}
}
