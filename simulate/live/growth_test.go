package live_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/shares"
	"courier/schemas"
)

// A job without an SLO starts with two of eight CPUs, the most that its model ever had. Its own epochs
// show that it would be faster with more, so it gets the free ones. Later jobs with an SLO need some of
// them: they are promised their SLOs, and meet them, because the first job lends them.
func TestGrowth_UsesFreeCPUsThatTheModelNeverHad(t *testing.T) {
	measured := *eightCPUs
	measured.CPUs = []uint32{1, 2}
	regressors, err := measured.Fit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const epochs, cpus, slo = 60, 2, 80 * time.Second
	inVirtualTime(t, func(t *testing.T) {
		part := &scope{T: t}
		defer part.end()
		q := newQueue(part, world{"as known", 1, 0.02, 0.02, 0.3, 0}, eightCPUs)
		q.cpu = true
		q.serve(advisor.Options{Policy: advisor.Policy{
			Admission: schemas.AdmissionQueue, Objective: shares.ObjectiveEfficiency,
		}}, regressors)

		var all sync.WaitGroup
		var first time.Duration
		all.Go(func() {
			begin := time.Now()
			q.submit("first", epochs)
			q.train("first", epochs, cpus, nil, rand.New(rand.NewPCG(1, 1)))
			first = time.Since(begin)
		})
		for _, id := range []string{"second", "third"} {
			all.Go(func() {
				pass(60 * time.Second)
				begin := time.Now()
				granted, isPromised := q.admitted(id, 15, slo)
				q.train(id, 15, granted, nil, rand.New(rand.NewPCG(1, 2)))
				if took := time.Since(begin); !isPromised || took > slo {
					t.Errorf("the %s job takes %s, promised: %t, want a promise of %s that is kept",
						id, took, isPromised, slo)
				}
			})
		}
		all.Wait()

		alone := time.Duration(epochs * eightCPUs.EpochSeconds(cpus, cpus) * float64(time.Second))
		t.Logf("first job %s, with two CPUs %s; %d moves", first, alone, q.moves)
		if ratio := first.Seconds() / alone.Seconds(); !(ratio < 0.7) {
			t.Errorf("the first job takes %.2f of its time with two CPUs, want less than 0.7", ratio)
		}
		if q.moves < 3 {
			t.Errorf("%d moves, want two that grow the first job and one that returns CPUs", q.moves)
		}
	})
}
