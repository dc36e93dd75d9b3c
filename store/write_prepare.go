package store

import (
	"context"

	"courier/bus"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ahead is what is ready of a batch while the one before it is written: its events by
// table, and an insert of the largest part, for which only the word is missing. ClickHouse
// and this process take turns otherwise, each waiting for the other.
type ahead struct {
	groups []*group
	copies map[string]int // by table, within the batch
	insert *insertion     // of all rows of its table; nil if there is none
}

// sorted is a batch by table, without an insert.
func (s *Store) sorted(b *bus.Batch) *ahead {
	a := &ahead{}
	a.groups, a.copies = tabulate(s.tables, b.Stream, b.Records)
	return a
}

// prepare readies a new batch.
func (s *Store) prepare(ctx context.Context, b *bus.Batch) {
	a := s.sorted(b)
	b.Prepared = a
	var largest *group
	for _, g := range a.groups {
		if largest == nil || len(g.items) > len(largest.items) {
			largest = g
		}
	}
	if largest == nil {
		return
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)() // once it is ready, the end of ctx is not its end
	// An insert that is open meanwhile would keep others from the table, also who loads it
	// again for the batch before.
	i, err := s.database.prepareInsert(longer, largest.table, rowsOf(largest.items), token(s.salt, *b, largest.table), driver.WithReleaseConnection())
	if err != nil {
		s.log.Debug("an insert is not prepared", "table", largest.table.name, "error", err)
		return // put tries again, and tells
	}
	a.insert = i
}

// take returns the insert of so many rows of a table if it is ready, once.
func (a *ahead) take(t *table, rows int) *insertion {
	if i := a.insert; i != nil && i.table == t && i.rows == rows && i.ctx.Err() == nil {
		a.insert = nil
		return i
	}
	return nil
}

// Close ends what was not taken.
func (a *ahead) Close() error {
	if a.insert != nil {
		a.insert.drop()
		a.insert = nil
	}
	return nil
}
