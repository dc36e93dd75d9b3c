package store_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/prometheus/client_golang/prometheus"
)

// One of several stores writes each stream. When it ends, another one continues without duplicate
// rows or repeated batches.
func TestStore_SharesTheStreams(t *testing.T) {
	t.Parallel()
	d, server := storetest.New(t), bustest.NewServer(t)
	feed := server.Connect(t)
	stop := publishAll(t, feed)
	type member struct {
		reg  *prometheus.Registry
		stop func()
	}
	var members []member
	join := func() {
		m := member{reg: prometheus.NewRegistry()}
		s := store.New(server.Connect(t), d, slog.New(slog.DiscardHandler), m.reg,
			store.Options{MaxAge: 20 * time.Millisecond})
		m.stop = run(t, s)
		members = append(members, m)
	}
	// hasOneWriter reports whether exactly one store is the writer of the stream. On a busy
	// machine two may be, until the first one notices the loss of its lease.
	hasOneWriter := func(d schemas.Durable) bool {
		n := 0.0
		for _, m := range members {
			n += gather(t, m.reg)["courier_store_is_writer/"+d.Stream]
		}
		return n == 1
	}
	join()
	join()
	for range 4 {
		await(t, "a writer for each stream", func() bool {
			for _, durable := range schemas.StoreDurables() {
				if !hasOneWriter(durable) {
					return false
				}
			}
			return true
		})
		join()
		members[0].stop()
		members = members[1:]
	}
	awaitSequences(t, d, stop())
	for _, m := range members {
		m.stop()
	}
	compare(t, feed, d)
}

// A new writer first stops the running statements of the previous writer.
func TestStore_StopsThePreviousWriter(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	ended := make(chan error, 1)
	before := d.AsWriter(t.Context(), schemas.StreamNode)
	go func() {
		ended <- d.Exec(before, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
	}()
	running := func() bool { // matches the text: statements of the next writer have similar IDs
		return selectNumber(t, d,
			"SELECT count() AS n FROM system.processes WHERE startsWith(query_id, 'courier/' || "+
				"currentDatabase() || '/NODE/') AND query LIKE 'SELECT sum(sipHash64%'") > 0
	}
	await(t, "the statement of the previous writer", running)
	stop := run(t, newStore(t, bustest.New(t), d))
	defer stop()
	if err := <-ended; err == nil {
		t.Error("the statement of the previous writer ended by itself")
	}
	await(t, "its end", func() bool {
		return !running()
	}) // ClickHouse may list a statement after its answer
}

// After a timeout an insert may still run in ClickHouse. The store stops it before it rebuilds the
// roll-ups of the batch, which would otherwise count the rows twice.
func TestStore_StopsAnInsertBeforeItsRepetition(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	ctx := d.AsWriter(t.Context(), schemas.StreamNode)
	first, giveUp := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- d.Exec(first, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
	}()
	defer func() { giveUp(); <-ended }()
	running := func() uint64 {
		return selectNumber(t, d, "SELECT count() AS n FROM system.processes"+
			" WHERE startsWith(query_id, 'courier/' || currentDatabase() || '/NODE/')"+
			" AND query LIKE 'SELECT sum(sipHash64%'")
	}
	await(t, "the first attempt", func() bool { return running() > 0 })
	s := newTestLog()
	s.sample("node-a", 1)
	b := batch(schemas.StreamNode, 1, s.events...)
	b.Redelivered = true
	must(t, newStore(t, nil, d).Write(ctx, b))
	if running() > 0 {
		t.Error("the first attempt still runs after the roll-ups were rebuilt")
	}
	compareRollUps(t, d)
}
