package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"courier/bus"
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
	for _, kind := range []string{"samples", "epochs"} {
		for _, rows := range []int{100, 1000, schemas.MaxBatchMessages} {
			b.Run(fmt.Sprintf("%s/rows=%d", kind, rows), func(b *testing.B) {
				benchmarkWrite(b, storetest.New(b), kind, rows)
			})
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
	d := storetest.New(b)
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

// BenchmarkIngest measures how fast the store writes samples from the log to the tables, and each
// half alone: a plain JetStream consumer that reads the same log, and clickhouse-go, which inserts
// the same rows from memory into the same table and roll-ups. It reports samples per second, and
// the throughput of the store relative to the slower half.
//
// It compares the processor time of all processes for a sample, the log server and the engine
// included, with that of telegraf for the same messages, if telegrafVariable is set.
func BenchmarkIngest(b *testing.B) {
	for _, each := range []int{1, 100} {
		b.Run(fmt.Sprintf("samples_per_message=%d", each), func(b *testing.B) { benchIngest(b, each) })
	}
}

func benchIngest(b *testing.B, each int) {
	const samples = 300_000
	server, engine := bustest.NewServer(b), storetest.NewServer(b)
	log := server.Connect(b)
	publishRaw(b, server.URL(), samples, each)
	d := storetest.Open(b, engine.Address(b))
	must(b, d.Migrate(b.Context()))
	rows := sampleRows(b, log)
	fetch := max(1000, 10_000/each)
	m := meter{samples: samples, engine: engine.Process(b).Pid}
	for b.Loop() {
		read := m.measure(b, "read", func() { readBare(b, server.URL(), samples/each, fetch) })
		insert := m.measure(b, "insert", func() { insertBare(b, d, rows) })
		clearSamples(b, d)
		forget(b, server.URL())
		whole := m.measure(b, "store", func() {
			stop := run(b, store.New(log, d, discard, nil, store.Options{}))
			awaitHandled(b, log, d, uint64(samples/each))
			stop()
		})
		b.ReportMetric(whole.rate/min(read.rate, insert.rate), "of-the-smaller")
		if program := os.Getenv(telegrafVariable); program != "" {
			clearSamples(b, d)
			config := telegrafConfig(b, server.URL(), engine)
			prepareTelegraf(b, server.URL())
			t := m.measure(b, "telegraf", func() { telegraf(b, program, config, d, samples) })
			b.ReportMetric(t.microseconds/whole.microseconds, "times-telegraf")
		}
	}
}

// clearSamples empties the tables of samples: without rows, no merge competes with the next writer.
func clearSamples(b *testing.B, d *store.Database) {
	for _, table := range []string{"node_sample", "node_minute", "node_hour"} {
		must(b, d.Exec(b.Context(), "TRUNCATE TABLE "+table))
	}
}

// meter measures writers of samples, with the engine in a process of its own.
type meter struct {
	samples int
	engine  int // process
}

// measured is a throughput in samples per second, and the processor time per sample.
type measured struct{ rate, microseconds float64 }

func (m meter) measure(b *testing.B, name string, do func()) measured {
	own, engine := processorSeconds(b, os.Getpid()), processorSeconds(b, m.engine)
	perSecond := rate(m.samples, do)
	perSample := 1e6 / float64(m.samples)
	own = (processorSeconds(b, os.Getpid()) - own) * perSample
	engine = (processorSeconds(b, m.engine) - engine) * perSample
	b.ReportMetric(perSecond, name+"/s")
	b.ReportMetric(own, name+"-cpu-µs")
	b.ReportMetric(engine, name+"-engine-cpu-µs")
	return measured{perSecond, own + engine}
}

func rate(samples int, do func()) float64 {
	begin := time.Now()
	do()
	return float64(samples) / time.Since(begin).Seconds()
}

func sampleRows(b *testing.B, log *bus.Bus) (rows []any) {
	err := log.Read(b.Context(), bus.FollowOptions{Stream: schemas.StreamNode}, func(r bus.Record) error {
		_, row, ok := schemas.RowOf(r.Event)
		if !ok {
			return fmt.Errorf("%s: the event has no row", r.Subject)
		}
		rows = append(rows, row)
		return nil
	})
	must(b, err)
	return rows
}

// forget makes the next store start at the beginning of the log.
func forget(b *testing.B, url string) {
	js := streams(b, url)
	intents, err := js.Stream(b.Context(), "KV_"+schemas.BucketIntents)
	must(b, err)
	must(b, intents.Purge(b.Context()))
	for _, d := range schemas.StoreDurables() {
		if err := js.DeleteConsumer(b.Context(), d.Stream, d.Name); err != nil &&
			!errors.Is(err, jetstream.ErrConsumerNotFound) {
			b.Fatal(err)
		}
	}
}

// readBare fetches all messages with a plain consumer. It limits each fetch, because nats.go drops
// messages beyond 64 MiB.
func readBare(b *testing.B, url string, samples, fetch int) {
	js := streams(b, url)
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	name := fmt.Sprint("bare-", time.Now().UnixNano())
	c, err := js.CreateConsumer(ctx, schemas.StreamNode, jetstream.ConsumerConfig{
		Durable:       name,
		AckPolicy:     jetstream.AckAllPolicy,
		MaxAckPending: 3 * schemas.MaxBatchMessages,
	})
	must(b, err)
	defer func() { must(b, js.DeleteConsumer(ctx, schemas.StreamNode, name)) }()
	for n := 0; n < samples; {
		batch, err := c.Fetch(fetch, jetstream.FetchMaxWait(time.Second))
		must(b, err)
		var last jetstream.Msg
		for m := range batch.Messages() {
			last = m
			n++
		}
		must(b, batch.Error())
		if last != nil {
			must(b, last.Ack())
		}
	}
}

func insertBare(b *testing.B, d *store.Database, rows []any) {
	for len(rows) > 0 {
		n := min(len(rows), schemas.MaxBatchMessages)
		must(b, d.Insert(b.Context(), "node_sample", rows[:n]))
		rows = rows[n:]
	}
}
