package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkIngest measures how fast the store writes samples from the log to the tables, and each
// half alone: a plain JetStream consumer that reads the same log, and clickhouse-go, which inserts
// the same rows from memory into the same table and roll-ups. It reports samples per second, and
// the throughput of the store relative to the slower half.
func BenchmarkIngest(b *testing.B) {
	for _, each := range []int{1, 100} {
		b.Run(fmt.Sprintf("samples_per_message=%d", each), func(b *testing.B) { benchIngest(b, each) })
	}
}

func benchIngest(b *testing.B, each int) {
	const samples = 1_000_000
	server := bustest.NewServer(b)
	log := server.Connect(b)
	publishRaw(b, server.URL(), samples, each)
	for b.Loop() {
		read := rate(samples, func() { readBare(b, server.URL(), samples/each, max(1000, 10_000/each)) })
		d := storetest.New(b)
		must(b, d.Migrate(b.Context()))
		rows := sampleRows(b, log)
		insert := rate(samples, func() { insertBare(b, d, rows) })
		for _, table := range []string{
			"node_sample",
			"node_minute",
			"node_hour",
		} { // without rows, no merge competes with the store
			must(b, d.Exec(b.Context(), "TRUNCATE TABLE "+table))
		}
		forget(b, server.URL())
		whole := rate(samples, func() {
			stop := run(b, store.New(log, d, slog.New(slog.DiscardHandler), nil, store.Options{}))
			handled(b, log, uint64(samples/each))
			stop()
		})
		b.ReportMetric(read, "read/s")
		b.ReportMetric(insert, "insert/s")
		b.ReportMetric(whole, "samples/s")
		b.ReportMetric(whole/min(read, insert), "of-the-smaller")
	}
}

// handled waits until the store has handled a number of samples, without querying the database.
func handled(b *testing.B, log *bus.Bus, samples uint64) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, d := range schemas.StoreDurables() {
			if d.Stream != schemas.StreamNode {
				continue
			}
			behind, err := log.Backlog(ctx, d)
			must(b, err)
			if behind.Done >= samples {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatal("timeout: the store has not handled all samples")
		}
	}
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
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
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
