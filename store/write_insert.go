package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

// findStored returns the rows of the table that have an event_id of the group. On replicas, it
// returns those that most replicas have: see replicaSettings.
func (d *Database) findStored(ctx context.Context, g *tableRows) ([]storedRow, error) {
	batch, err := ext.NewTable(batchTable, ext.Column("key", "String"), ext.Column("event_id", "String"))
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
	ctx = clickhouse.Context(ctx, clickhouse.WithExternalTable(batch))
	ctx, lookup := d.begin(ctx, "lookup in "+g.table.name, nil)
	var found []storedRow
	if err := lookup.end(d.conn.Select(ctx, &found, g.table.lookup, args...)); err != nil {
		return nil, err
	}
	return found, nil
}

// insertSettings make an insert idempotent: ClickHouse skips a block with a known token, in the
// table and in each roll-up.
//
//   - Asynchronous inserts would separate blocks from their tokens.
//   - A batch may hold samples of any number of months, and therefore of partitions.
//
// Without a token, ClickHouse inserts the rows in any case.
func insertSettings(token string) clickhouse.Settings {
	s := clickhouse.Settings{
		"insert_deduplicate":              0,
		"async_insert":                    0,
		"max_partitions_per_insert_block": 0,
	}
	if token != "" {
		s["insert_deduplicate"] = 1
		s["insert_deduplication_token"] = token
		s["deduplicate_blocks_in_dependent_materialized_views"] = 1
	}
	return s
}

// insert inserts rows as one block. A second insert of the same rows with the same token changes
// nothing.
func (d *Database) insert(ctx context.Context, t *eventTable, rows []any, token string) error {
	ctx, statement := d.begin(ctx, "insert into "+t.name, insertSettings(token))
	return statement.end(d.sendBlock(ctx, t, rows))
}

func (d *Database) sendBlock(ctx context.Context, t *eventTable, rows []any) error {
	b, err := d.conn.PrepareBatch(ctx, t.insert)
	if err != nil {
		return err
	}
	defer b.Close()
	for _, row := range rows {
		if err := b.AppendStruct(row); err != nil {
			return fmt.Errorf("encode a row of %s: %w", t.name, err)
		}
	}
	return b.Send()
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
	return value[uint64](ctx, d, "SELECT max(sequence) FROM log_position WHERE stream = ?", stream)
}

// stopWriter ends the running statements of the writer of ctx's stream. They may belong to a
// previous writer that crashed or lost its lease, or to this writer after a timeout or a lost
// connection. If an insert continued after its table and before its roll-ups, a roll-up that is
// rebuilt in the meantime would count its rows twice.
func (d *Database) stopWriter(ctx context.Context) error {
	prefix, ok := ctx.Value(writerKey{}).(string)
	if !ok {
		return nil // not a writer
	}
	statement := fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') SYNC", prefix)
	ctx = context.WithValue(ctx, writerKey{}, nil)
	if !d.hasReplicas() {
		return d.exec(ctx, "stop the previous writer", statement)
	}
	return d.execOnReplicas(ctx, "stop the previous writer", statement)
}

// execOnReplicas executes a statement on every replica of a shard. It fails if no replica is
// available, or one that is available refuses the statement.
func (d *Database) execOnReplicas(ctx context.Context, kind, statement string) error {
	var failures []error
	for _, server := range d.options.Addr {
		err := d.visit(server, "default", func(replica *Database) error {
			return replica.exec(ctx, kind, statement)
		})
		if errors.Is(err, ErrRefused) {
			return err
		}
		if err != nil {
			d.log.Warn("replica is not available", "action", kind, "server", server, "error", err)
			failures = append(failures, err)
		}
	}
	if len(failures) == len(d.options.Addr) {
		return errors.Join(failures...)
	}
	return nil
}
