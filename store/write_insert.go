package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// places returns where the table has events with the group's identities.
func (d *Database) places(ctx context.Context, g *group) ([]place, error) {
	batch, err := ext.NewTable(batchTable, ext.Column("key", "String"), ext.Column("event_id", "String"))
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
	}
	for i := range g.items {
		if err := batch.Append(g.items[i].key, g.items[i].id); err != nil {
			return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
		}
	}
	var args []any
	if g.table.name == "node_sample" {
		args = []any{g.from.UnixNano(), g.until.UnixNano()}
	}
	ctx, end := d.begin(clickhouse.Context(ctx, clickhouse.WithExternalTable(batch)), "lookup in "+g.table.name, nil)
	var found []place
	if err := end.with(d.conn.Select(ctx, &found, g.table.lookup, args...)); err != nil {
		return nil, err
	}
	return found, nil
}

// insertSettings make an insert that may be repeated: in the table and in each
// roll-up, ClickHouse skips the block whose token it knows. Waiting in a buffer
// of the server (asynchronous inserts) would break blocks and tokens apart, and
// a batch may hold samples of any month. What is prepared without a connection is a
// statement of the same name, which ClickHouse may not have put away when the insert
// comes: the insert waits for that.
func insertSettings(token string) clickhouse.Settings {
	return clickhouse.Settings{
		"insert_deduplicate":                                 1,
		"insert_deduplication_token":                         token,
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		"async_insert":                                       0,
		"replace_running_query":                              1,
		"max_partitions_per_insert_block":                    0,
	}
}

// insertion is rows on their way into a table, as one block. The same rows under the
// same token change nothing the second time.
type insertion struct {
	table *table
	rows  int
	ctx   context.Context // that of the statement
	batch driver.Batch
	end   *statement
}

// prepareInsert turns rows into columns. It keeps a connection and, at ClickHouse, the
// table, unless an option says otherwise.
func (d *Database) prepareInsert(ctx context.Context, t *table, rows []any, token string, options ...driver.PrepareBatchOption) (*insertion, error) {
	i := &insertion{table: t, rows: len(rows)}
	i.ctx, i.end = d.begin(ctx, "insert into "+t.name, insertSettings(token))
	var err error
	if i.batch, err = d.block(i.ctx, t, rows, options...); err != nil {
		return nil, i.end.with(err)
	}
	return i, nil
}

// send writes the rows, unless ctx ends.
func (i *insertion) send(ctx context.Context) error {
	defer i.batch.Close()
	defer context.AfterFunc(ctx, i.end.cancel)()
	i.end.start = time.Now() // what it waited for is not ClickHouse's time
	return i.end.with(i.batch.Send())
}

// drop ends one that is not sent.
func (i *insertion) drop() {
	_ = i.batch.Close() // nothing was written
	i.end.cancel()
}

// block begins an insert, and fills its columns.
func (d *Database) block(ctx context.Context, t *table, rows []any, options ...driver.PrepareBatchOption) (driver.Batch, error) {
	b, err := d.conn.PrepareBatch(ctx, t.insert, options...)
	if err != nil {
		return nil, err
	}
	if err := t.columns(rows, func(c int, values any) error { return b.Column(c).Append(values) }); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// send inserts rows.
func (d *Database) send(ctx context.Context, t *table, rows []any) error {
	b, err := d.block(ctx, t, rows)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Send()
}

// advance records that the tables hold a stream up to a sequence.
func (d *Database) advance(ctx context.Context, stream string, sequence uint64) error {
	return d.exec(ctx, "record position", "INSERT INTO log_position SELECT ?, ?, now64(9, 'UTC')", stream, sequence)
}

// Position returns the sequence up to which the tables hold a stream without
// holes, 0 if they hold nothing of it.
func (d *Database) Position(ctx context.Context, stream string) (uint64, error) {
	var rows []struct {
		Sequence uint64 `ch:"sequence"`
	}
	if err := d.Query(ctx, &rows, "SELECT max(sequence) AS sequence FROM log_position WHERE stream = ?", stream); err != nil {
		return 0, err
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("read position of %s: %d rows, want 1", stream, len(rows))
	}
	return rows[0].Sequence, nil
}
