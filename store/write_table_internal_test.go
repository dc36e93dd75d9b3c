package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A repeated batch inserts its own unconfirmed rows again, so that the insert waits for more
// replicas, but no duplicate of an earlier row, whether that one is confirmed or not.
func TestTableRows_UnconfirmedRowsAreMissing(t *testing.T) {
	t.Parallel()
	stored := []storedRow{
		{EventID: "confirmed", Sequence: 1},
		{EventID: "confirmed", Sequence: 1, Confirmed: true},
		{EventID: "unconfirmed", Sequence: 2},
		{EventID: "confirmed duplicate", Sequence: 1, Confirmed: true},
		{EventID: "unconfirmed duplicate", Sequence: 1},
	}
	g := &tableRows{}
	for i, id := range []string{
		"confirmed", "unconfirmed", "confirmed duplicate", "unconfirmed duplicate", "new",
	} {
		g.append(eventRow{id: id, sequence: uint64(i + 1), row: id})
	}

	missing := rowValues(g.missing(stored))
	if diff := cmp.Diff([]any{"unconfirmed", "new"}, missing); diff != "" {
		t.Errorf("missing rows (-want +got):\n%s", diff)
	}
	rows := g.withoutDuplicates(stored)
	if diff := cmp.Diff([]any{"confirmed", "unconfirmed", "new"}, rows); diff != "" {
		t.Errorf("rows of a new batch (-want +got):\n%s", diff)
	}
}
