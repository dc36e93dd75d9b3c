package live_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/schemas"
)

// A job that borrows CPUs starts when the lender has given them up, at the end of an epoch. If the
// runner of the lender does not publish that, as earlier ones do not, the job waits for the first epoch
// with fewer CPUs.
func TestLoan_StartsWhenTheLenderHasGivenUpItsCPUs(t *testing.T) {
	const slower = 30
	node := *twoCPUs
	node.EpochSeconds = func(cpus, processes float64) float64 {
		return slower * twoCPUSeconds(cpus, processes)
	}
	regressors, err := node.Fit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inVirtualTime(t, func(t *testing.T) {
		// wait returns how long the second job waits for its loan.
		wait := func(omitsApplied bool) time.Duration {
			part := &scope{T: t}
			defer part.end()
			q := newQueue(part, world{"as known", 1, 0.02, 0.02, 0.3, 0}, &node)
			q.betweenEpochs, q.omitsApplied = true, omitsApplied
			q.serve(advisor.Options{Policy: advisor.Policy{Admission: schemas.AdmissionProtect}}, regressors)

			var all sync.WaitGroup
			for i, job := range []struct {
				id     string
				at     time.Duration
				epochs int
				slo    time.Duration
			}{
				{"lender", 0, 30, 15 * time.Minute},
				{"borrower", 30 * time.Second, 10, 4 * time.Minute},
			} {
				all.Go(func() {
					pass(job.at)
					begin := time.Now()
					cpus, isPromised := q.admitted(job.id, job.epochs, job.slo)
					q.train(job.id, job.epochs, cpus, nil, rand.New(rand.NewPCG(1, uint64(i))))
					if took := time.Since(begin); !isPromised || took > job.slo {
						t.Errorf("%s takes %s, promised: %t, want a promise of %s that is kept",
							job.id, took, isPromised, job.slo)
					}
				})
			}
			all.Wait()
			return q.waited
		}
		published, omitted := wait(false), wait(true)
		t.Logf("the borrower waits %s, if the change is not published %s", published, omitted)
		alone := time.Duration(slower * aloneSeconds * float64(time.Second))
		if published == 0 || published > alone+time.Second {
			t.Errorf("the borrower waits %s, want at most an epoch of the lender, %s", published, alone)
		}
		if omitted < published+alone {
			t.Errorf("without the event it waits %s, want an epoch with one CPU, too", omitted)
		}
	})
}
