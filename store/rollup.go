package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

type rollUp struct {
	name, view string
	time       string // column with the time; "" if its rows belong to no hour
	key        string // expression for the key of a row
	sourceKey  string // the same key as an expression on a row of the source
}

// rollUps are the roll-ups by source. One that reads another one follows it.
var rollUps = map[string][]rollUp{
	"node_sample": {
		{
			name:      "node_minute",
			view:      "node_minute_view",
			time:      "minute",
			key:       "(node, minute)",
			sourceKey: "(node, toStartOfMinute(at))",
		},
		{
			name:      "node_hour",
			view:      "node_hour_view",
			time:      "hour",
			key:       "(node, hour)",
			sourceKey: "(node, toStartOfHour(at))",
		},
	},
	"job_epoch": {
		{
			name:      "job_run",
			view:      "job_run_view",
			key:       "(job_id, run)",
			sourceKey: "(job_id, run)",
		},
	},
}

// rebuildRollUps recomputes the rows of the roll-ups to which a repeated batch contributes.
//
// ClickHouse inserts into a table and its roll-ups one after the other. If it crashes in
// between, or between the token and the block of a roll-up, the roll-up may lack rows that
// ClickHouse skips as duplicates from then on. The rows of a roll-up follow from the table alone,
// so they are deleted and recomputed. After a crash in between, the batch is repeated.
//
//	node_sample ─► node_minute: deleted, recomputed ─► node_hour: has counted them twice,
//	                                                   deleted, recomputed
func (d *Database) rebuildRollUps(ctx context.Context, source string, first, last uint64) error {
	for _, r := range rollUps[source] {
		if err := d.rebuildRollUp(ctx, source, r, first, last); err != nil {
			return err
		}
	}
	return nil
}

// maxStatementKeys bounds a statement: a key has up to 100 bytes, a statement 256 KiB.
const maxStatementKeys = 1000

func (d *Database) rebuildRollUp(ctx context.Context, source string, r rollUp, first, last uint64) error {
	query, err := d.viewQuery(ctx, r)
	if err != nil {
		return err
	}
	affected := fmt.Sprintf("%s IN (SELECT %s FROM %s WHERE sequence BETWEEN %d AND %d)",
		r.key, r.sourceKey, source, first, last)
	keys, err := values[string](ctx, d, fmt.Sprintf("SELECT DISTINCT toString(%s) FROM %s "+
		"WHERE sequence BETWEEN %d AND %d", r.sourceKey, source, first, last))
	if err != nil {
		return err
	}
	// Replicated tables refuse a deletion with a subquery.
	for chunk := range slices.Chunk(keys, maxStatementKeys) {
		rows := fmt.Sprintf("%s WHERE %s IN (%s)", r.name, r.key, strings.Join(chunk, ", "))
		if err := d.deleteAndWait(ctx, "rebuild "+r.name, rows); err != nil {
			return err
		}
	}
	return d.insertRollUp(ctx, r, query, affected)
}

// insertRollUp inserts the rows that the query of a roll-up's view computes now and that match a
// condition. If they do not fit in memory, ClickHouse aggregates them on disk.
func (d *Database) insertRollUp(ctx context.Context, r rollUp, query, condition string) error {
	settings := clickhouse.Settings{
		"insert_deduplicate":                 0,
		"max_bytes_before_external_group_by": 100 << 20,
	}
	ctx, running := d.begin(ctx, "rebuild "+r.name, settings)
	return running.end(d.conn.Exec(ctx,
		fmt.Sprintf("INSERT INTO %s SELECT * FROM (%s) WHERE %s", r.name, query, condition)))
}

// recomputeRollUps computes the roll-ups of a table again from all its rows, in the hours from which
// its TTL has deleted nothing.
func (d *Database) recomputeRollUps(ctx context.Context, source string) error {
	kept, err := d.keptHours(ctx, source, "at")
	if err != nil {
		return err
	}
	for _, r := range rollUps[source] {
		query, err := d.viewQuery(ctx, r)
		if err != nil {
			return err
		}
		condition := "1"
		if r.time != "" {
			condition = kept.secondsCondition(r.time)
		}
		if err := d.deleteAndWait(ctx, "rebuild "+r.name, r.name+" WHERE "+condition); err != nil {
			return err
		}
		if err := d.insertRollUp(ctx, r, query, condition); err != nil {
			return err
		}
	}
	return nil
}

// deleteAndWait deletes rows, and returns when the server has none of them.
//
// On replicas, ClickHouse (26.7) waits for parts that only a lost server has, although it has given
// up their insert: until that server returns. Later inserts are not affected by the deletion.
func (d *Database) deleteAndWait(ctx context.Context, kind, rows string) error {
	if !d.isReplica {
		return d.exec(ctx, kind, "DELETE FROM "+rows)
	}
	settings := clickhouse.Settings{"lightweight_deletes_sync": 0}
	deleteCtx, running := d.begin(ctx, kind, settings)
	if err := running.end(d.conn.Exec(deleteCtx, "DELETE FROM "+rows)); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, d.timeoutOf(ctx))
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		left, err := value[uint64](ctx, d, "SELECT count() FROM "+rows)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait for the deletion of %d rows: %w", kind, left, ctx.Err())
		}
	}
}

func (d *Database) viewQuery(ctx context.Context, r rollUp) (string, error) {
	query, err := value[string](ctx, d, "SELECT max(as_select) FROM system.tables "+
		"WHERE database = currentDatabase() AND name = ?", r.view)
	if err == nil && query == "" {
		err = fmt.Errorf("rebuild %s: the database has no view %s", r.name, r.view)
	}
	return query, err
}
