package advisor_test

import (
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// lastMove returns the move of the last advice for a running job; nil if it has none.
func lastMove(t *testing.T, b *bus.Bus, job string) *schemas.PlannedMove {
	t.Helper()
	subject := schemas.JobSubject(job, schemas.EventAdvice)
	records, err := b.Last(within(t), schemas.StreamAdvice, subject)
	if err != nil || len(records) == 0 {
		return nil
	}
	return records[0].Event.(*schemas.Advice).Move
}

// Under both policies, a running elastic job lends a CPU to a new one that would not fit otherwise.
// It gets the CPU back after the end of that job. The lender is advised once the new job has started.
func TestAdmission_LendsCPUsAndReturnsThem(t *testing.T) {
	for _, policy := range []string{schemas.AdmissionProtect, schemas.AdmissionQueue} {
		t.Run(policy, func(t *testing.T) {
			server := bustest.NewServer(t)
			b := server.Connect(t)
			promoteFitted(t, b, fitShared)
			startWith(t, server.Connect(t), advisor.Options{
				Admission: policy, MoveCPUs: advisor.MovesOn,
			}, nil)
			old := manyEpochs("old", 4*time.Hour)
			old.CPUs, old.Elastic, old.Epochs = schemas.CPUs{1, 2}, true, 3000
			await(t, "all regressors", func() bool {
				return len(predict(t, b, old).Regressors) == len(schemas.Targets())
			})
			publish(t, b, sampleOf("node-a", twoCores, func(s *schemas.Sample) {
				s.EventID, s.At, s.Number, s.IntervalSeconds = "node-a/1", time.Now(), 1, 5
			}))
			if v, _ := verdict(t, b, old); v != schemas.Admitted {
				t.Fatalf("old: %s, want admitted", v)
			}
			start := func(id string, cpus, epochs uint32) {
				e := manyStarted(id)
				e.CPUs, e.Epochs, e.Moves = cpus, epochs, []string{schemas.MoveCPUs}
				publish(t, b, e)
				awaitRunning(t, b, id)
			}
			start("old", 2, 3000)

			urgent := manyEpochs("urgent", 2000*time.Second)
			urgent.CPUs, urgent.Elastic = schemas.CPUs{1, 2}, true
			v, a := verdict(t, b, urgent)
			want := []schemas.Loan{{JobID: "old", FromCPUs: 2, ToCPUs: 1}}
			if diff := cmp.Diff(want, a.Admission.Loans); v != schemas.Admitted || diff != "" {
				t.Fatalf("urgent: %s: %s; loans (-want +got):\n%s", v, a.Message, diff)
			}
			start("urgent", 1, 1000)
			await(t, "old to lend a CPU", func() bool {
				m := lastMove(t, b, "old")
				return m != nil && m.Purpose == schemas.MoveLent && m.ToCPUs == 1 && !m.DryRun
			})

			e := epochEvent("old", 1, 1)
			e.At, e.DurationSeconds, e.CPUs, e.Epochs = time.Now(), 1.5, 1, 3000
			publish(t, b, e)
			ended := finishedEvent("urgent", 1)
			ended.At, ended.CPUs, ended.Epochs = time.Now(), 1, 1000
			publish(t, b, ended)
			await(t, "old to get the CPU back", func() bool {
				m := lastMove(t, b, "old")
				return m != nil && m.Purpose == schemas.MoveReturned && m.ToCPUs == 2
			})
		})
	}
}
