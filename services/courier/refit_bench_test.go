package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/services/local"
)

// BenchmarkRefit publishes jobs to a courier all and requests a fit on all of them. The benchmark reports the seconds
// from the request to the use of the regressors (s/refit), and the 99th percentile of the latency
// of job.predict at 200 requests per second, before and during the fit (p99-ms, p99-ms/refit).
// COURIER_LONG adds larger logs.
func BenchmarkRefit(b *testing.B) {
	sizes := []int{1_000, 10_000, 30_000}
	if os.Getenv("COURIER_LONG") != "" {
		sizes = append(sizes, 100_000, 1_000_000)
	}
	for _, epochs := range sizes {
		b.Run(fmt.Sprintf("child/epochs=%d", epochs), func(b *testing.B) { benchmarkRefit(b, epochs) })
	}
}

func benchmarkRefit(b *testing.B, epochs int) {
	l := startAll(b, nil)
	publishPast(b, l.Bus(), "past", epochs)
	q := schemas.JobRequest{
		Model: "model-1", CPUs: schemas.CPUs{1, 2, 4, 8}, BatchSizes: []int{4, 16, 64, 128}, Epochs: 10,
		SLO: schemas.Duration(time.Hour),
	}
	refit := func() float64 {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
		defer cancel()
		begin := time.Now()
		var reply schemas.TrainReply
		err := l.Bus().Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{}, &reply)
		if err != nil || len(reply.Promoted) != len(schemas.Targets()) {
			b.Fatalf("train = %+v, %v, want a promotion for each target", reply, err)
		}
		return time.Since(begin).Seconds()
	}
	refit() // later answers have predictions
	var seconds float64
	for b.Loop() {
		calm := latencies(b, l, q, func(ctx context.Context) { <-ctx.Done() }, 5*time.Second)
		during := latencies(b, l, q, func(context.Context) { seconds = refit() }, 10*time.Minute)
		b.ReportMetric(percentileMs(calm, 0.99), "p99-ms")
		b.ReportMetric(percentileMs(during, 0.99), "p99-ms/refit")
		b.ReportMetric(percentileMs(calm, 0.5), "p50-ms")
		b.ReportMetric(percentileMs(during, 0.5), "p50-ms/refit")
		b.ReportMetric(seconds, "s/refit")
	}
}

func percentileMs(took []time.Duration, p float64) float64 {
	slices.Sort(took)
	return float64(took[min(len(took)-1, int(p*float64(len(took))))].Microseconds()) / 1000
}

// latencies sends 200 requests per second regardless of answers while a function runs, and returns
// the time of each answer since its request was due.
func latencies(
	b *testing.B, l *local.Instance, q schemas.JobRequest, meanwhile func(context.Context), most time.Duration,
) []time.Duration {
	ctx, cancel := context.WithTimeout(b.Context(), most)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		meanwhile(ctx)
	}()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	begin := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 1; ; {
		select {
		case <-ended:
			all.Wait()
			return took
		case <-tick.C:
		}
		for ; time.Since(begin) >= time.Duration(n)*5*time.Millisecond; n++ {
			due := begin.Add(time.Duration(n) * 5 * time.Millisecond)
			all.Go(func() {
				var a schemas.Advice
				if err := l.Bus().Request(b.Context(), schemas.SubjectJobPredict, &q, &a); err != nil {
					b.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(due))
			})
		}
	}
}

// publishPast publishes runs of twenty epochs on twelve nodes, three at a time on each, that end
// now. Job names begin with prefix.
func publishPast(t testing.TB, b *bus.Bus, prefix string, epochs int) {
	random := rand.New(rand.NewPCG(1, 2))
	own := fnv.New32a()
	fmt.Fprint(own, prefix)
	stretch := 1 + 1e-12*float64(own.Sum32()) // makes runs distinct: the trainer ignores copies
	var free [36]float64
	origin := time.Now().Add(-time.Duration(float64(epochs)/36*1.1*float64(time.Second)) - time.Minute)
	publish := func(e schemas.Event) {
		if _, err := b.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n*20 < epochs; n++ {
		slot := 0
		for i := range free {
			if free[i] < free[slot] {
				slot = i
			}
		}
		set := schemas.Setting{
			Model:     fmt.Sprint("model-", random.IntN(4)),
			BatchSize: []uint32{4, 8, 16, 32, 64, 128}[random.IntN(6)],
			CPUs:      []uint32{1, 2, 4, 8}[random.IntN(4)],
			Epochs:    20,
			Nodes:     []string{fmt.Sprint("node-", slot/3)},
		}
		job, s := fmt.Sprint(prefix, "-", n), free[slot]
		stamp := func(id string) schemas.JobStamp {
			at := origin.Add(time.Duration(s * float64(time.Second))).UTC()
			return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: 1}
		}
		publish(&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1)), Setting: set, NodeCores: 16})
		first := s
		s += 0.2 + 0.4/float64(set.CPUs) + 0.05*random.Float64()
		for i := range uint32(20) {
			noise := math.Exp(0.05 * random.NormFloat64())
			seconds := stretch * (1 + 8/float64(set.BatchSize)) / float64(set.CPUs) * noise
			s += seconds
			accuracy := 0.9 + 0.004*float64(i) - 0.0002*float64(set.BatchSize)
			publish(&schemas.Epoch{
				JobStamp: stamp(schemas.EpochID(job, 1, i+1)), Setting: set, NodeCores: 16, Epoch: i + 1,
				DurationSeconds: seconds, DurationSource: schemas.DurationReported, Accuracy: &accuracy,
			})
		}
		publish(&schemas.Ended{
			JobStamp: stamp(schemas.EndedID(job, 1, schemas.EventFinished)), Setting: set,
			Outcome: schemas.EventFinished, DurationSeconds: s - first, EpochsDone: 20,
		})
		free[slot] = s + random.Float64()
	}
}
