package store_test

import (
	"testing"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A prepared insert is used unless the table already has some of its rows. It does not block other
// statements.
func TestStore_PreparesInserts(t *testing.T) {
	t.Parallel()
	for _, protocol := range storetest.Protocols(t) {
		t.Run(protocol, func(t *testing.T) {
			d := storetest.NewIn(t, protocol)
			w := newStore(t, nil, d)
			samples := func() []schemas.Event {
				s := newTestLog()
				for n := range uint64(30) {
					s.sample("node-a", n+1)
				}
				return s.events
			}
			whole, copied := batch(
				schemas.StreamNode,
				1,
				samples()[:10]...), batch(
				schemas.StreamNode,
				11,
				samples()[5:20]...)
			w.Prepare(t.Context(), &whole)
			w.Prepare(t.Context(), &copied)
			if !store.Ready(whole) || !store.Ready(copied) {
				t.Fatal("no insert is prepared")
			}
			for _, statement := range []string{"DETACH TABLE node_sample SYNC", "ATTACH TABLE node_sample"} {
				must(t, d.Exec(t.Context(), statement))
			}
			write(t, w, whole)
			if store.Ready(whole) {
				t.Error("the prepared insert was not used")
			}
			write(t, w, copied)
			if !store.Ready(copied) {
				t.Error("a prepared insert with duplicates was used")
			}
			must(t, copied.Prepared.Close())
			for what, want := range map[string]uint64{"count()": 20, "uniqExact(event_id)": 20} {
				if n := selectNumber(t, d, "SELECT "+what+" AS n FROM node_sample"); n != want {
					t.Errorf("%s is %d, want %d", what, n, want)
				}
			}
			if n := selectNumber(t, d, "SELECT sum(samples) AS n FROM node_minute"); n != 20 {
				t.Errorf("the minutes count %d samples, want 20", n)
			}
			late := batch(schemas.StreamNode, 26, samples()[20:]...)
			w.Prepare(t.Context(), &late)
			must(t, late.Prepared.Close())
			write(t, w, late) // a batch is also written after its prepared insert was released
			if n := selectNumber(t, d, "SELECT count() AS n FROM node_sample"); n != 30 {
				t.Errorf("%d samples, want 30", n)
			}
		})
	}
}

// When an insert arrives at a busy ClickHouse, the statement that prepared it may still run with
// the same query ID.
func TestDatabase_InsertsWithTheIDOfARunningStatement(t *testing.T) {
	t.Parallel()
	d := storetest.NewIn(t, "clickhouse")
	must(t, d.Migrate(t.Context()))
	ctx := clickhouse.Context(t.Context(), clickhouse.WithQueryID(t.Name()))
	before := make(chan error, 1)
	go func() {
		before <- d.Exec(ctx, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
	}()
	await(t, "its namesake", func() bool {
		return selectNumber(t, d, "SELECT count() AS n FROM system.processes WHERE query_id = ?", t.Name()) > 0
	})
	s := newTestLog()
	s.sample("node-a", 1)
	must(t, d.InsertAs(ctx, "node_sample", []any{s.events[0]}, "token"))
	<-before // the insert has stopped it
	if n := selectNumber(t, d, "SELECT count() AS n FROM node_sample"); n != 1 {
		t.Errorf("%d samples, want 1", n)
	}
}
