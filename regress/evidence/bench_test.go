package evidence_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"courier/regress/evidence"
)

// synthetic returns runs of n configurations of one model.
func synthetic(n int) []evidence.Run {
	random := rand.New(rand.NewPCG(1, 1))
	var runs []evidence.Run
	for i := range n {
		c := configurationOf("a", 8<<(i%8), "x")
		c.CPUs = 1 << (i / 8 % 5)
		c.ConcurrentJobs = float64(1 + i/40)
		seconds := 1000/float64(c.BatchSize) + 5/math.Sqrt(float64(c.CPUs)) + c.ConcurrentJobs
		for k := range 2 {
			r := curveOf(fmt.Sprint(i, k), c.BatchSize, 12, 1)
			r.Configuration = c
			for e, s := range draw(random, seconds, 12) {
				r.Epochs[e].Seconds = s
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// processorTime reports the CPU time per operation, which other processes disturb less than wall
// time.
func processorTime(b *testing.B) func() {
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric((used()-before)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{16, 50, 200} {
		runs := synthetic(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			defer processorTime(b)()
			for b.Loop() {
				if _, err := evidence.Fit(context.Background(), runs, evidence.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Many models on a cluster: 10,000 runs of 100 models with 20 configurations each.
func BenchmarkFitManyModels(b *testing.B) {
	var runs []evidence.Run
	for m := range 100 {
		for k := range 5 {
			for i, r := range synthetic(20)[:40] {
				if i%2 == 0 {
					r.Model, r.ID = fmt.Sprint("m", m), fmt.Sprint(m, "-", k, "-", i)
					runs = append(runs, r)
				}
			}
		}
	}
	defer processorTime(b)()
	for b.Loop() {
		if _, err := evidence.Fit(context.Background(), runs, evidence.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(runs)), "runs")
}

// BenchmarkDecision predicts time and accuracy of four alternatives.
func BenchmarkDecision(b *testing.B) {
	for _, n := range []int{16, 50, 200} {
		runs := synthetic(n)
		p := fitted(b, runs)
		for _, kind := range []string{"measured", "interpolated", "other load"} {
			c := runs[0].Configuration
			b.Run(fmt.Sprint(kind, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				sum := 0.0
				defer processorTime(b)()
				for b.Loop() {
					for _, batch := range []int{16, 32, 64, 128} {
						c.BatchSize = batch
						switch kind {
						case "interpolated":
							c.BatchSize += batch / 3
						case "other load":
							c.ProcessesPerCore = 0.5
						}
						t := p.Time(c, 10)
						sum += t.Probability(300)*p.Reaches(c, 0.9, 10) + t.Quantile(0.95)
					}
				}
				_ = sum
			})
		}
	}
}
