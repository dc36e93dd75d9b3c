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

// Of several stores one writes each stream. When it ends, another one continues: no row is
// written twice, and no batch is repeated.
func TestStore_SharesTheStreams(t *testing.T) {
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
		s := store.New(
			server.Connect(t),
			d,
			slog.New(slog.DiscardHandler),
			m.reg,
			store.Options{MaxAge: 20 * time.Millisecond},
		)
		m.stop = run(t, s)
		members = append(members, m)
	}
	// hasOneWriter reports whether one store is the writer of the stream. On a busy machine
	// another may do so before the one that has lost the lease knows of it.
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
	reach(t, d, stop())
	for _, m := range members {
		m.stop()
	}
	compare(t, feed, d)
}

// The running statements of a previous writer end before another one writes.
func TestStore_StopsThePreviousWriter(t *testing.T) {
	contract(t, func(t *testing.T, d *store.Database) {
		ended := make(chan error, 1)
		before := d.AsWriter(t.Context(), schemas.StreamNode)
		go func() {
			ended <- d.Exec(before,
				"SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
		}()
		running := func() bool { // its own text: the next writer's statements have names like it
			return ask(
				t,
				d,
				"SELECT count() AS n FROM system.processes WHERE startsWith(query_id, 'courier/' || "+
					"currentDatabase() || '/NODE/') AND query LIKE 'SELECT sum(sipHash64%'",
			) > 0
		}
		await(t, "the writer before", running)
		stop := run(t, newStore(t, bustest.New(t), d))
		defer stop()
		if err := <-ended; err == nil {
			t.Error("it ended by itself")
		}
		await(t, "its end", func() bool {
			return !running()
		}) // ClickHouse answers the client first
	})
}

// An insert that timed out may still run in ClickHouse. It ends before the roll-ups of its batch
// are rebuilt, which otherwise would count its rows twice.
func TestStore_StopsAnInsertBeforeItsRepetition(t *testing.T) {
	contract(t, func(t *testing.T, d *store.Database) {
		ctx := d.AsWriter(t.Context(), schemas.StreamNode)
		first, giveUp := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- d.Exec(first,
				"SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
		}()
		defer func() { giveUp(); <-ended }()
		running := func() uint64 {
			return ask(t, d, "SELECT count() AS n FROM system.processes"+
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
	})
}
