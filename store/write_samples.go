package store

import (
	"context"
	"time"

	"courier/bus"
)

// marks know which samples cannot be in their table yet, so that not every batch is
// looked up: a copy has the instant of its original, and what happened after all that
// the table has of its node is new. That holds while this store alone writes: behind a
// gap in the log, where another may have written, they begin anew with the table.
type marks struct {
	next   uint64 // sequence of the next batch
	start  time.Time
	latest map[string]time.Time // by node, of those seen since
}

// follow readies the marks for a batch.
func (m *marks) follow(ctx context.Context, d *Database, b *bus.Batch) error {
	if m.latest != nil && b.First == m.next {
		m.next = b.Last + 1
		return nil
	}
	var rows []struct {
		At time.Time `ch:"at"`
	}
	if err := d.Query(ctx, &rows, "SELECT max(at) AS at FROM node_sample"); err != nil {
		return err
	}
	*m = marks{next: b.Last + 1, latest: map[string]time.Time{}}
	for _, r := range rows {
		m.start = r.At
	}
	return nil
}

// doubtful are the items of a group that may be in the table already.
func (m *marks) doubtful(g *group) *group {
	some := &group{table: g.table}
	for i := range g.items {
		it := &g.items[i]
		mark := m.latest[it.key]
		if it.at.After(mark) && it.at.After(m.start) {
			m.latest[it.key] = it.at
			continue
		}
		some.put(*it)
	}
	return some
}
