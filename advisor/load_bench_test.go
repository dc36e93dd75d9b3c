package advisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// startCrowd starts an advisor with the fixture's regressors and a thousand running jobs, ten on
// each of a hundred nodes.
func startCrowd(b *testing.B, server *bustest.Server) *bus.Bus {
	b.Helper()
	bus := server.Connect(b)
	startFitted(b, server.Connect(b))
	q := advisortest.Request()
	q.NewNodes = true // no job has run yet
	for n := range 1000 {
		q.JobID, q.Nodes, q.SLO = fmt.Sprintf("job-%04d", n), []string{fmt.Sprintf("node-%02d",
			n%100)}, schemas.Duration(time.Hour)
		if _, err := submit(b, bus, q); err != nil {
			b.Fatal(err)
		}
		e := advisortest.StartedEvent(q.JobID, 1)
		e.Nodes = q.Nodes
		publish(b, bus, e)
	}
	await(b, "the last job to run", func() bool {
		return status(b, bus, "job-0999").State == schemas.StateRunning
	})
	return bus
}

func percentile(values []time.Duration, p float64) float64 {
	slices.Sort(values)
	return float64(values[min(len(values)-1, int(p*float64(len(values))))].Microseconds()) / 1000
}

// BenchmarkUnderLoad sends 1,000 requests per second, regardless of the replies, while a thousand
// jobs run and report 100 epochs per second. It measures the time to a reply, and the time from an
// epoch to its advice. It sends b.N requests.
func BenchmarkUnderLoad(b *testing.B) {
	server := bustest.NewServer(b)
	bus := startCrowd(b, server)
	asker, _ := connect(b, server.URL())
	q := advisortest.Request()
	q.Nodes = []string{"node-50"}
	data, err := schemas.Marshal(&q)
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	ended, heard := map[string]time.Time{}, []time.Duration(nil)
	if _, err := asker.Subscribe(schemas.JobSubject("*", schemas.EventAdvice), func(m *nats.Msg) {
		e, err := schemas.Parse(m.Subject, m.Data)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if at, ok := ended[e.(*schemas.Advice).JobID]; ok && e.(*schemas.Advice).EpochsDone > 0 {
			heard = append(heard, time.Since(at))
			delete(ended, e.(*schemas.Advice).JobID)
		}
	}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var epochs sync.WaitGroup
	epochs.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			e := advisortest.EpochEvent(fmt.Sprintf("job-%04d", n%1000), 1, uint32(1+n/1000))
			e.Nodes = []string{fmt.Sprintf("node-%02d", n%100)}
			mu.Lock()
			ended[e.JobID] = time.Now()
			mu.Unlock()
			if _, err := bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		}
	})
	took := make([]time.Duration, b.N)
	var asked sync.WaitGroup
	b.ResetTimer()
	begin := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for next := 0; next < b.N; {
		<-tick.C
		for due := int(time.Since(begin) / time.Millisecond); next < b.N && next < due; next++ {
			i := next
			sent := begin.Add(time.Duration(i+
				1) * time.Millisecond) // scheduled time, so that waiting counts
			asked.Go(func() {
				if m, err := asker.Request(schemas.SubjectJobPredict, data, 5*time.Second); err != nil || m.Header.Get(
					"Nats-Service-Error",
				) != "" {
					b.Error(err)
				}
				took[i] = time.Since(sent)
			})
		}
	}
	asked.Wait()
	b.StopTimer()
	cancel()
	epochs.Wait()
	b.ReportMetric(percentile(took, 0.5), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")
	mu.Lock()
	defer mu.Unlock()
	if len(heard) > 0 {
		b.ReportMetric(percentile(heard, 0.5), "advice-p50-ms")
		b.ReportMetric(percentile(heard, 0.99), "advice-p99-ms")
		b.ReportMetric(float64(len(heard)), "advice")
	}
}

// BenchmarkThroughput keeps 64 requests in flight and measures replies per second. It compares
// job.predict with an echo service and with a service that always returns the same reply of
// job.predict, which shows the cost of transport.
func BenchmarkThroughput(b *testing.B) {
	server := bustest.NewServer(b)
	startFitted(b, server.Connect(b))
	q := advisortest.Request()
	echo, _ := connect(b, server.URL())
	serve(b, echo, "plain.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	asker, _ := connect(b, server.URL())
	data, err := schemas.Marshal(&q)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := asker.Request(schemas.SubjectJobPredict, data, 5*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	serve(b, echo, "plain.same", func(m *nats.Msg) { _ = m.Respond(answer.Data) })
	cpu := map[string]float64{}
	rate := func(subject string, requests int) float64 {
		begin, before := time.Now(), processorMicroseconds(b)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for range requests / 64 {
					if _, err := asker.Request(subject, data, 5*time.Second); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		cpu[subject] += (processorMicroseconds(b) - before) / float64(requests)
		return float64(requests) / time.Since(begin).Seconds()
	}
	var plain, same, answers []float64
	for b.Loop() { // alternate, so that machine load affects both alike
		plain = append(plain, rate("plain.echo", 12_800))
		answers = append(answers, rate(schemas.SubjectJobPredict, 12_800))
		same = append(same, rate("plain.same", 12_800))
	}
	slices.Sort(plain)
	slices.Sort(answers)
	slices.Sort(same)
	b.ReportMetric(plain[len(plain)/2], "echo/s")
	b.ReportMetric(answers[len(answers)/2], "predict/s")
	b.ReportMetric(answers[len(answers)/2]/plain[len(plain)/2], "predict/echo")
	b.ReportMetric(same[len(same)/2], "same/s")
	b.ReportMetric(answers[len(answers)/2]/same[len(same)/2], "predict/same")
	b.ReportMetric(float64(len(answer.Data)), "answer-bytes")
	b.ReportMetric(cpu["plain.echo"]/float64(len(plain)), "cpu-µs/echo")
	b.ReportMetric(cpu["plain.same"]/float64(len(plain)), "cpu-µs/same")
	b.ReportMetric(cpu[schemas.SubjectJobPredict]/float64(len(plain)), "cpu-µs/predict")
}

// processorMicroseconds returns the CPU time of the process. Other processes affect it less than
// elapsed time.
func processorMicroseconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
