package store

import (
	"context"

	"courier/bus"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// preparedBatch is a batch grouped by table, with a prepared insert for the largest group. It
// is built while the previous batch is written, so that ClickHouse and this process work at the
// same time.
type preparedBatch struct {
	groups     []*tableRows
	duplicates map[string]int  // within the batch, by table
	insert     *preparedInsert // of all rows of its table; nil if there is none
}

// groupBatch groups a batch by table, without an insert.
func (s *Store) groupBatch(b *bus.Batch) *preparedBatch {
	p := &preparedBatch{}
	p.groups, p.duplicates = groupByTable(s.tables, b.Records)
	return p
}

// prepare sets b.Prepared.
func (s *Store) prepare(ctx context.Context, b *bus.Batch) {
	p := s.groupBatch(b)
	b.Prepared = p
	var largest *tableRows
	for _, g := range p.groups {
		if largest == nil || len(g.rows) > len(largest.rows) {
			largest = g
		}
	}
	if largest == nil {
		return
	}

	// ctx may end the preparation, but not the insert after it.
	insertCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	token := dedupToken(*b, largest.table)

	// The insert keeps no connection: ClickHouse would hold a lock on the table, and block a
	// reload of it for the previous batch.
	i, err := s.database.prepareInsert(insertCtx, largest.table, rowValues(largest.rows), token,
		driver.WithReleaseConnection())
	if err != nil {
		s.log.Debug("an insert is not prepared", "table", largest.table.name, "error", err)
		return // writeGroup tries again and reports the error
	}
	p.insert = i
}

// takeInsert returns the prepared insert if it is for this number of rows of the table, or nil.
// The caller then owns it.
func (p *preparedBatch) takeInsert(t *eventTable, rows int) *preparedInsert {
	i := p.insert
	if i == nil || i.table != t || i.rows != rows || i.ctx.Err() != nil {
		return nil
	}
	p.insert = nil
	return i
}

// Close drops the insert unless it was taken.
func (p *preparedBatch) Close() error {
	if p.insert != nil {
		p.insert.drop()
		p.insert = nil
	}
	return nil
}
