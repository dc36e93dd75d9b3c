package store_test

import (
	"fmt"
	"log/slog"
	"testing"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/prometheus/client_golang/prometheus"
)

// Duplicates are detected regardless of which store has written the original. Samples that cannot be
// duplicates are not looked up.
func TestStore_LooksUpPossibleDuplicates(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	d, err := store.Open(t.Context(),
		store.Options{URL: storetest.Address(t, storetest.Protocols(t)[0])},
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
		if n := selectNumber(t, d, "SELECT "+count+" AS n FROM node_sample"); n != uint64(len(e)) {
			t.Errorf("%s is %d, want %d", count, n, len(e))
		}
	}
}
