package advisor_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkApply publishes epochs of a thousand running jobs, ten on each node, as fast as the
// stream accepts them. It measures the epochs per second that the advisor applies and re-predicts.
// Epochs scatter by 5 percent around their prediction, so that only some advice is published.
// COURIER_BENCH_NATS replaces the embedded server by others, on which streams have three replicas.
func BenchmarkApply(b *testing.B) {
	const jobs = 1000
	url, connect := streamServer(b)
	client := connect()
	promote(b, client)
	start(b, connect())
	q := advisortest.Request()
	await(b, "all regressors", func() bool {
		return len(predict(b, client, q).Regressors) == len(schemas.Targets())
	})
	for n := range jobs {
		e := advisortest.StartedEvent(fmt.Sprintf("job-%04d", n), 1)
		e.Epochs, e.Nodes = 100_000, []string{fmt.Sprint("node-", n/10)}
		publish(b, client, e)
	}
	await(b, "all jobs", func() bool { return benchKnows(client, jobs-1, b) })
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var heard atomic.Int64
	sub, err := nc.Subscribe(schemas.JobSubject("*", schemas.EventAdvice), func(*nats.Msg) { heard.Add(1) })
	if err != nil {
		b.Fatal(err)
	}
	number := uint32(0)
	b.ResetTimer()
	for range b.N { // each a thousand epochs
		number++
		for n := range jobs {
			e := advisortest.EpochEvent(fmt.Sprintf("job-%04d", n), 1, number)
			e.Epochs, e.Nodes = 100_000, []string{fmt.Sprint("node-", n/10)}
			e.DurationSeconds = 7.5 * (1 + 0.05*random.NormFloat64())
			data, err := schemas.Marshal(e)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := js.PublishAsync(e.Subject(), data, jetstream.WithMsgID(e.EventID),
				jetstream.WithStallWait(10*time.Second)); err != nil {
				b.Fatal(err)
			}
		}
	}
	<-js.PublishAsyncComplete()
	await(b, "the last epoch", func() bool {
		return status(b, client, "job-0999").EpochsDone == number
	})
	b.StopTimer()
	if err := sub.Unsubscribe(); err != nil {
		b.Fatal(err)
	}
	epochs := float64(b.N * jobs)
	b.ReportMetric(epochs/b.Elapsed().Seconds(), "epochs/s")
	b.ReportMetric(float64(heard.Load())/epochs, "advice/epoch")
}

func benchKnows(client *bus.Bus, n int, b *testing.B) bool {
	var s schemas.JobStatus
	q := schemas.JobStatusRequest{JobID: fmt.Sprintf("job-%04d", n)}
	return client.Request(within(b), schemas.SubjectJobStatus, &q, &s) == nil
}

func streamServer(b *testing.B) (url string, connect func() *bus.Bus) {
	b.Helper()
	url = os.Getenv("COURIER_BENCH_NATS")
	if url == "" {
		server := bustest.NewServer(b)
		return server.URL(), func() *bus.Bus { return server.Connect(b) }
	}
	return url, func() *bus.Bus {
		c, err := bus.Connect(within(b), bus.Options{URL: url, Replicas: 3}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close(within(b)) })
		if err := c.Prepare(within(b)); err != nil {
			b.Fatal(err)
		}
		return c
	}
}
