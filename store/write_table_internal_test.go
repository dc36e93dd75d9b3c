package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A repeated batch inserts the rows that are missing; a new batch inserts its own stored rows again,
// for which ClickHouse knows the token. Neither inserts a duplicate of an earlier row.
func TestTableRows_LeavesOutDuplicates(t *testing.T) {
	t.Parallel()
	stored := []storedRow{
		{EventID: "stored", Sequence: 1},
		{EventID: "duplicate", Sequence: 1},
	}
	g := &tableRows{}
	for i, id := range []string{"stored", "duplicate", "new"} {
		g.append(eventRow{id: id, sequence: uint64(i + 1), row: id})
	}

	missing := rowValues(g.missing(stored))
	if diff := cmp.Diff([]any{"new"}, missing); diff != "" {
		t.Errorf("missing rows (-want +got):\n%s", diff)
	}
	rows := g.withoutDuplicates(stored)
	if diff := cmp.Diff([]any{"stored", "new"}, rows); diff != "" {
		t.Errorf("rows of a new batch (-want +got):\n%s", diff)
	}
}
