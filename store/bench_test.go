package store_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkStore_Write writes batches of samples, and of epochs of jobs with 25 epochs each. Like
// Run, it looks up duplicates, inserts, and records the position.
func BenchmarkStore_Write(b *testing.B) {
	for _, protocol := range storetest.Protocols(b) {
		for _, kind := range []string{"samples", "epochs"} {
			for _, rows := range []int{100, 1000, schemas.MaxBatchMessages} {
				b.Run(fmt.Sprintf("%s/%s/rows=%d", protocol, kind, rows), func(b *testing.B) {
					benchmarkWrite(b, storetest.NewIn(b, protocol), kind, rows)
				})
			}
		}
	}
}

func benchmarkWrite(b *testing.B, d *store.Database, kind string, rows int) {
	w := newStore(b, nil, d)
	b.ReportAllocs()
	next := uint64(1) << 40
	for b.Loop() {
		b.StopTimer()
		s, name := newTestLog(), schemas.StreamNode
		for i := range rows {
			n := next + uint64(i)
			s.at = time.Now().Add(-time.Duration(rows-i) * time.Millisecond).UTC()
			if kind == "samples" {
				s.sample(fmt.Sprintf("node-%d", n%10), n)
				continue
			}
			name = schemas.StreamJob
			s.epoch(fmt.Sprintf("job-%d", n/25), 1, uint32(n%25)+1)
		}
		full := batch(name, next, s.events...)
		next += uint64(rows)
		b.StartTimer()
		must(b, w.Write(b.Context(), full))
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkHistory_Events reads 100,000 epochs of 4,000 jobs.
func BenchmarkHistory_Events(b *testing.B) {
	for _, protocol := range storetest.Protocols(b) {
		b.Run(protocol, func(b *testing.B) {
			d := storetest.NewIn(b, protocol)
			w := newStore(b, nil, d)
			const jobs, batches = 400, 10
			for n := range batches {
				s := newTestLog()
				for j := range jobs {
					job := fmt.Sprintf("job-%d-%d", n, j)
					s.started(job, 1)
					for e := range uint32(25) {
						s.epoch(job, 1, e+1)
					}
					s.ended(job, 1, schemas.EventFinished)
				}
				write(b, w, batch(schemas.StreamJob, uint64(n)*uint64(len(s.events))+1, s.events...))
			}
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				events = len(history(b, d, time.Time{}))
			}
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			if events != batches*jobs*27 {
				b.Fatalf("%d events, want %d", events, batches*jobs*27)
			}
		})
	}
}

// BenchmarkVerifier_Verify compares 200,000 samples of 100 nodes and the roll-up, without a
// difference and with one missing row per hour.
func BenchmarkVerifier_Verify(b *testing.B) {
	const samples = 200_000
	d, server := storetest.New(b), bustest.NewServer(b)
	log := server.Connect(b)
	publishRaw(b, server.URL(), samples, 1)
	stop := run(b, store.New(log, d, slog.New(slog.DiscardHandler), nil, store.Options{}))
	awaitSequences(b, d, map[string]uint64{schemas.StreamNode: samples})
	stop()
	for _, damage := range []string{
		"",
		"DELETE FROM node_sample WHERE node = 'node-7' AND at IN (SELECT min(at) FROM node_sample WHERE node " +
			"= 'node-7' GROUP BY toStartOfHour(at))",
	} {
		name, want := "agrees", 0
		if damage != "" {
			name, want = "every hour differs", 1
			must(b, d.Exec(b.Context(), damage))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, got := verify(b, log, d, store.VerifyOptions{}, 0)
				if (got["node_sample"].Missing > 0) != (want > 0) {
					b.Fatalf("unexpected differences %+v", got)
				}
			}
			b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// streams returns a JetStream client without a Bus, connected until the benchmark ends.
func streams(b *testing.B, url string, options ...jetstream.JetStreamOpt) jetstream.JetStream {
	b.Helper()
	nc, err := nats.Connect(url)
	must(b, err)
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc, options...)
	must(b, err)
	return js
}

// publishRaw fills the log fast: each message has several samples of a node, and the benchmark
// waits for acknowledgements only at the end.
func publishRaw(b *testing.B, url string, samples, each int) {
	b.Helper()
	js := streams(b, url, jetstream.WithPublishAsyncMaxPending(1000))
	s := newTestLog()
	begin := s.at.Add(-4 * time.Hour)
	for n := range samples / each {
		s.events, s.at = s.events[:0], begin.Add(time.Duration(n/100*each)*4*time.Second)
		for i := range each {
			s.sample(fmt.Sprintf("node-%d", n%100), uint64(n*each+i))
			s.at = s.at.Add(4 * time.Second)
		}
		var message any = s.events
		if each == 1 {
			message = s.events[0]
		}
		data, err := schemas.Marshal(message)
		must(b, err)
		_, err = js.PublishAsync(s.events[0].Subject(), data,
			jetstream.WithMsgID(schemas.MessageID(s.events)), jetstream.WithStallWait(time.Minute))
		must(b, err)
	}
	<-js.PublishAsyncComplete()
}
