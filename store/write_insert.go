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

// findStored returns the rows of the table that have an event_id of the group. On replicas, it
// returns a confirmed row also as unconfirmed.
func (d *Database) findStored(ctx context.Context, g *tableRows) ([]storedRow, error) {
	batch, err := ext.NewTable(batchTable,
		ext.Column("key", "String"), ext.Column("event_id", "String"))
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
	}
	for i := range g.rows {
		if err := batch.Append(g.rows[i].key, g.rows[i].id); err != nil {
			return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
		}
	}

	var args []any
	if g.table.name == "node_sample" {
		args = []any{g.from.UnixNano(), g.until.UnixNano()}
	}
	query, args := d.withUnconfirmed(g.table.lookup, args)
	ctx = clickhouse.Context(ctx, clickhouse.WithExternalTable(batch))
	ctx, lookup := d.begin(ctx, "lookup in "+g.table.name, nil)
	var found []storedRow
	if err := lookup.end(d.conn.Select(ctx, &found, query, args...)); err != nil {
		return nil, err
	}
	return found, nil
}

// insertSettings make an insert idempotent: ClickHouse skips a block with a known token, in the
// table and in each roll-up.
//
//   - Asynchronous inserts would separate blocks from their tokens.
//   - A batch may hold samples of any number of months, and therefore of partitions.
//   - An insert that is prepared without a connection uses two statements with the same query
//     ID. ClickHouse may still be ending the first one when the second one arrives; with
//     replace_running_query the second one waits.
//
// Without a token, ClickHouse inserts the rows in any case.
func insertSettings(token string) clickhouse.Settings {
	s := clickhouse.Settings{
		"insert_deduplicate":              0,
		"async_insert":                    0,
		"replace_running_query":           1,
		"max_partitions_per_insert_block": 0,
	}
	if token != "" {
		s["insert_deduplicate"] = 1
		s["insert_deduplication_token"] = token
		s["deduplicate_blocks_in_dependent_materialized_views"] = 1
	}
	return s
}

// preparedInsert is a block of rows that is ready to be sent. A second insert of the same rows
// with the same token changes nothing.
type preparedInsert struct {
	table     *eventTable
	rows      int
	ctx       context.Context // of the statement
	batch     driver.Batch
	statement *statement
}

// prepareInsert encodes rows into columns. The insert keeps a connection, and a lock on the
// table in ClickHouse, unless an option prevents that.
func (d *Database) prepareInsert(
	ctx context.Context, t *eventTable, rows []any, token string,
	options ...driver.PrepareBatchOption,
) (*preparedInsert, error) {
	i := &preparedInsert{table: t, rows: len(rows)}
	i.ctx, i.statement = d.begin(ctx, "insert into "+t.name, insertSettings(token))
	var err error
	if i.batch, err = d.encodeBlock(i.ctx, t, rows, options...); err != nil {
		return nil, i.statement.end(err)
	}
	return i, nil
}

// send writes the rows. It fails if ctx ends.
func (i *preparedInsert) send(ctx context.Context) error {
	defer i.batch.Close()
	defer context.AfterFunc(ctx, i.statement.cancel)()
	i.statement.start = time.Now() // exclude the time between prepareInsert and send
	return i.statement.end(i.batch.Send())
}

// drop discards an insert that was not sent.
func (i *preparedInsert) drop() {
	_ = i.batch.Close() // nothing was written
	i.statement.cancel()
}

// encodeBlock starts an insert and appends rows to its columns.
func (d *Database) encodeBlock(
	ctx context.Context, t *eventTable, rows []any, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	b, err := d.conn.PrepareBatch(ctx, t.insert, options...)
	if err != nil {
		return nil, err
	}
	appendColumn := func(c int, values any) error { return b.Column(c).Append(values) }
	if err := t.eachColumn(rows, appendColumn); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// recordPosition records that the tables hold a stream up to a sequence. It needs no quorum of
// replicas, for which the writers of several streams would wait for each other: a position that is
// lost only hides rows until the next one.
func (d *Database) recordPosition(ctx context.Context, stream string, sequence uint64) error {
	settings := clickhouse.Settings{"async_insert": 0, "insert_quorum": 0}
	ctx, running := d.begin(ctx, "record position", settings)
	return running.end(d.conn.Exec(ctx,
		"INSERT INTO log_position SELECT ?, ?, now64(9, 'UTC')", stream, sequence))
}

// Position returns the sequence up to which the tables hold a stream without gaps, or 0.
func (d *Database) Position(ctx context.Context, stream string) (uint64, error) {
	var rows []struct {
		Sequence uint64 `ch:"sequence"`
	}
	err := d.Query(ctx, &rows,
		"SELECT max(sequence) AS sequence FROM log_position WHERE stream = ?", stream)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("read position of %s: %d rows, want 1", stream, len(rows))
	}
	return rows[0].Sequence, nil
}
