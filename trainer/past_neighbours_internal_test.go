package trainer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// The index finds the neighbours that a scan of all runs finds.
func TestNeighbours_EqualAScanOfAllRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	p := NewPast()
	at := func(hours float64) time.Time {
		return time.Unix(1_790_000_000, 0).Add(time.Duration(hours * float64(time.Hour)))
	}
	stamp := func(job string, what string, hours float64) schemas.JobStamp {
		return schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: job + what, At: at(hours)},
			JobID: job,
			Run:   1,
		}
	}
	for n := range 300 {
		job, begin := fmt.Sprint("job-", n), 40*random.Float64()
		long := random.ExpFloat64()
		if n%50 == 0 {
			long = 3 * longRun
		}
		set := schemas.Setting{
			Model:     "m",
			BatchSize: 4,
			CPUs:      1,
			Nodes:     []string{fmt.Sprint("n", random.IntN(3))},
		}
		if n%7 == 0 {
			set.Nodes = []string{"n0", "n2"}
		}
		p.Add(&schemas.Started{JobStamp: stamp(job, "s", begin), Setting: set}, uint64(3*n+1))
		p.Add(&schemas.Epoch{
			JobStamp:        stamp(job, "e", begin+long/2),
			Setting:         set,
			Epoch:           1,
			DurationSeconds: 1,
		}, uint64(3*n+2))
		if n%11 == 0 {
			continue // the run is still open
		}
		outcome := schemas.EventFinished
		if n%13 == 0 {
			outcome = schemas.EventLost
		}
		p.Add(&schemas.Ended{
			JobStamp: stamp(job, "x", begin+long),
			Setting:  set,
			Outcome:  outcome,
		}, uint64(3*n+3))
		if n%26 == 0 { // the lost run continues
			p.Add(&schemas.Epoch{
				JobStamp:        stamp(job, "e2", begin+long+0.1),
				Setting:         set,
				Epoch:           2,
				DurationSeconds: 1,
			}, uint64(3*n+3))
		}
	}
	for _, r := range p.order {
		until := r.span.Until
		if until.IsZero() {
			until = r.lastKnown()
		}
		for _, node := range r.span.Nodes {
			all := []schemas.Span{}
			for _, o := range p.order {
				if o != r {
					all = append(all, o.span)
				}
			}
			self := r.span
			self.Nodes = []string{node}
			self.Hardware = self.Hardware[:1]
			want, _ := schemas.LoadBetween(self, all, r.span.From, until)
			got, _ := schemas.LoadBetween(self, p.neighbours.between(r, r.span.From, until), r.span.From,
				until)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s on %s (-all +neighbours):\n%s", r.span.JobID, node, d)
			}
		}
	}
}
