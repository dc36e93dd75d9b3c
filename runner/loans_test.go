package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// serveLoan admits every job with a CPU that job old lends. cpus is what old holds.
func serveLoan(t *testing.T, b *bus.Bus, cpus *atomic.Uint32, upperBound float64) {
	t.Helper()
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			a := adviceFor(q)
			a.Chosen.UpperBoundSeconds = &upperBound
			a.Admission = &schemas.Admission{
				Policy:  schemas.AdmissionProtect,
				Verdict: schemas.Admitted,
				Loans:   []schemas.Loan{{JobID: "old", FromCPUs: 2, ToCPUs: 1}},
			}
			return a, nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			s := &schemas.JobStatus{JobID: q.JobID, State: schemas.StateRunning}
			s.CPUs = cpus.Load()
			return s, nil
		}),
		bus.Handle(schemas.SubjectJobCancel, func(_ context.Context, q *schemas.JobCancelRequest) (any, error) {
			return &schemas.JobStatus{JobID: q.JobID, State: schemas.StateCancelled}, nil
		}),
	}})
}

// A job that borrows CPUs starts when its lenders have given them up, or when the SLO leaves no time
// for more waiting.
func TestRun_WaitsForItsLoans(t *testing.T) {
	for _, c := range []struct {
		name       string
		upperBound float64 // of the job, with an SLO of 1,000 s
		ends       func(cpus *atomic.Uint32, end context.CancelFunc)
		want       string // contained in the output
		isStopped  bool
	}{
		{"lent", 100, func(cpus *atomic.Uint32, _ context.CancelFunc) { cpus.Store(1) }, "", false},
		{"no time to wait", 1000, nil, "starts although job old has not lent its CPUs yet", false},
		{"stopped", 100, func(_ *atomic.Uint32, end context.CancelFunc) { end() }, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			var cpus atomic.Uint32
			cpus.Store(2)
			serveLoan(t, b, &cpus, c.upperBound)
			o := options(t, trainingCommand("epochs", "3"))
			stderr := bustest.NewBuffer()
			o.Request.SLO = schemas.Duration(1000 * time.Second)
			o.Connect, o.Stderr = over(b), stderr
			ctx, end := context.WithCancel(t.Context())
			defer end()
			done := attempt(ctx, o)
			stderr.Await(t, "waits until job old has lent its CPUs")
			if c.ends != nil {
				c.ends(&cpus, end)
			}
			got := <-done
			err := got.err
			if c.isStopped {
				if err == nil || !strings.Contains(err.Error(), "cancelled before its start") ||
					!got.Started.IsZero() {
					t.Errorf("Run() = started %s, %v; want an error and no start", got.Started, err)
				}
				return
			}
			if err != nil || len(got.Epochs) != 3 {
				t.Errorf("Run() = %d epochs, %v; want 3", len(got.Epochs), err)
			}
			if !strings.Contains(stderr.String(), c.want) {
				t.Errorf("output %q lacks %q", stderr.String(), c.want)
			}
		})
	}
}
