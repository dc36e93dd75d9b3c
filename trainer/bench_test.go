package trainer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/schemas"
	"courier/trainer"
)

// pastOf returns the past of a cluster of twelve nodes in which runs of twenty epochs
// follow each other, three at a time on each node.
func pastOf(epochs int) *trainer.Past {
	random := rand.New(rand.NewPCG(1, 2))
	p := trainer.NewPast()
	var free [36]float64
	sequence := uint64(0)
	add := func(e schemas.Event) {
		sequence++
		p.Add(e, sequence)
	}
	for n := 0; n*20 < epochs; n++ {
		slot := 0
		for i := range free {
			if free[i] < free[slot] {
				slot = i
			}
		}
		set := setting([]uint32{
			4, 8, 16, 32, 64, 128,
		}[random.IntN(6)], []uint32{1, 2, 4, 8}[random.IntN(4)])
		set.Nodes, set.Epochs, set.Model = []string{fmt.Sprint("node-", slot/3)}, 20, fmt.Sprint(
			"model-", random.IntN(4),
		)
		job, s := fmt.Sprint("job-", n), free[slot]
		add(started(job, 1, s, set))
		first := s
		for i := range uint32(20) {
			seconds := (1 + 8/float64(set.BatchSize)) / float64(set.CPUs) * math.Exp(
				0.05*random.NormFloat64(),
			)
			s += seconds
			add(epochEvent(job, 1, i+1, s, seconds, set))
		}
		add(ended(job, 1, schemas.EventFinished, s, s-first, set))
		free[slot] = s + random.Float64()
	}
	return p
}

// BenchmarkRefit measures the steps from the past to a fitted regressor of epoch times: the time
// between the last event and a promotion without reading the log.
func BenchmarkRefit(b *testing.B) {
	for _, epochs := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(epochs), func(b *testing.B) {
			if epochs > 100_000 && testing.Short() {
				b.Skip("long")
			}
			p := pastOf(epochs)
			for b.Loop() {
				begin := time.Now()
				examples := p.Examples(schemas.TargetEpochTime)
				b.ReportMetric(time.Since(begin).Seconds(), "examples-s")
				begin = time.Now()
				if _, err := trainer.Fit(context.Background(), schemas.TargetEpochTime, examples,
					nil, trainer.Options{}); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(begin).Seconds(), "fit-s")
				b.ReportMetric(float64(len(examples)), "examples")
			}
		})
	}
}
