package decide_test

import (
	"syscall"
	"testing"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// processorMicroseconds returns the CPU time of the process. Other processes affect it less than
// elapsed time.
func processorMicroseconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// BenchmarkDecideEvidence decides about four alternatives with evidence regressors, and reports the
// CPU time of a decision. The cases are configurations that ran, configurations between them,
// configurations that cannot be promised, and chosen epochs without and with a target accuracy.
func BenchmarkDecideEvidence(b *testing.B) {
	r := evidenceRegressors(b)
	for _, c := range []struct {
		name   string
		change func(*schemas.JobRequest)
	}{
		{"measured", nil},
		{"interpolated", func(q *schemas.JobRequest) { q.BatchSizes = []int{48, 96, 192, 384} }},
		{"extrapolated", func(q *schemas.JobRequest) { q.CPUs = schemas.CPUs{4} }},
		{"free-epochs", func(q *schemas.JobRequest) { q.Epochs, q.MaxEpochs = 0, 40 }},
		{"target", func(q *schemas.JobRequest) { q.Epochs, q.MaxEpochs, q.TargetAccuracy = 0, 40, 0.5 }},
	} {
		q, now := evidenceQuestion(c.change), time.Now()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := processorMicroseconds(b)
			for b.Loop() {
				decide.Decide(q, r, now)
			}
			b.ReportMetric((processorMicroseconds(b)-before)/float64(b.N), "cpu-µs/decision")
		})
	}
}
