package store_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"courier/bus"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/prometheus/client_golang/prometheus"
)

func writeFifty(t *testing.T, d *store.Database) (*store.Store, bus.Batch) {
	t.Helper()
	s := newTestLog()
	for i := range uint64(50) {
		s.sample("node-a", i)
	}
	b, writer := batch(schemas.StreamNode, 1, s.events...), newStore(t, nil, d)
	must(t, writer.Write(t.Context(), b))
	return writer, b
}

// If ClickHouse crashes after it has stored the token of a block and before it stores the block, it
// skips the block from then on. The test creates the same state by deleting parts from the disk:
// the token is known, the rows are lost, and the roll-up has counted them.
func TestStore_RestoresABatchThatClickHouseHasLost(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	writer, b := writeFifty(t, d)
	counted := selectNumber(t, d, "SELECT sum(samples) AS n FROM node_minute")
	loseParts(t, d, "node_sample")
	if n := selectNumber(t, d, "SELECT count() AS n FROM node_sample"); n != 0 {
		t.Fatalf("%d rows are left, want none", n)
	}
	b.Redelivered = true
	must(t, writer.Write(t.Context(), b))
	must(t, writer.Write(t.Context(), b))
	wantNumber(t, d, 50, "SELECT count() AS n FROM node_sample")
	wantNumber(t, d, counted, "SELECT sum(samples) AS n FROM node_minute")
}

// Tables from a backup have no tokens. A batch that was unfinished at the backup of the log is
// repeated although the tables have its rows.
func TestStore_RepeatsABatchWithoutItsToken(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	writer, b := writeFifty(t, d)
	for _, table := range []string{"node_sample", "node_minute", "node_hour"} {
		for _, window := range []int{0, 1000} { // 0 deletes the tokens
			must(t, d.Exec(t.Context(), fmt.Sprintf(
				"ALTER TABLE %s MODIFY SETTING non_replicated_deduplication_window = %d", table,
				window)))
		}
	}
	b.Redelivered = true
	must(t, writer.Write(t.Context(), b))
	for _, q := range []string{
		"SELECT count() AS n FROM node_sample",
		"SELECT sum(samples) AS n FROM node_minute",
		"SELECT sum(samples) AS n FROM node_hour",
	} {
		wantNumber(t, d, 50, q)
	}
}

// loseParts deletes the parts of a table from the disk.
func loseParts(t *testing.T, d *store.Database, table string) {
	t.Helper()
	parts := partPaths(t, d, table)
	must(t, d.Exec(t.Context(), "DETACH TABLE "+table+" SYNC"))
	for _, path := range parts {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the files of the server cannot be accessed: %v", err)
		}
		must(t, os.RemoveAll(filepath.Clean(path)))
	}
	must(t, d.Exec(t.Context(), "ATTACH TABLE "+table))
}

// Duplicates are detected regardless of which store has written the original. Samples that cannot be
// duplicates are not looked up.
func TestStore_LooksUpPossibleDuplicates(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	d, err := store.Open(t.Context(),
		store.Options{URL: storetest.Address(t)},
		slog.New(slog.DiscardHandler), reg)
	must(t, err)
	defer d.Close()
	must(t, d.Migrate(t.Context()))
	s := newTestLog()
	for n := range uint64(13) {
		s.sample(fmt.Sprintf("node-%d", n%2), n+1)
	}
	e := s.events
	first, second, third := newStore(t, nil, d), newStore(t, nil, d), newStore(t, nil, d)
	looked := 0.0
	for i, step := range []struct {
		by     *store.Store
		at     uint64
		events []schemas.Event
		looks  bool
	}{
		{first, 1, e[0:4], false},
		{first, 5, []schemas.Event{e[1], e[4], e[4], e[2], e[5]}, true},
		// A store after a restart has only the table.
		{second, 10, []schemas.Event{e[5], e[3], e[6], e[7]}, true},
		{second, 14, e[8:10], false},
		// The other store has written the originals.
		{first, 16, []schemas.Event{e[7], e[6], e[10]}, true},
		{third, 19, e[11:12], false},
		{third, 20, []schemas.Event{e[12], e[10], e[11]}, true},
	} {
		write(t, step.by, batch(schemas.StreamNode, step.at, step.events...))
		now := gather(t, reg)["courier_store_statement_seconds/lookup"]
		if now > looked != step.looks {
			t.Errorf("batch %d: %v lookups after %v; want a further one: %v", i, now, looked, step.looks)
		}
		looked = now
	}
	for _, count := range []string{"count()", "uniqExact(event_id)"} {
		wantNumber(t, d, uint64(len(e)), "SELECT "+count+" AS n FROM node_sample")
	}
}
