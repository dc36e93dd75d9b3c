package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// unreadable are codes of ClickHouse that tell of a part on its disk which it
// cannot read: ended too early, checksums, missing or short files, corrupt data.
var unreadable = map[int32]bool{32: true, 33: true, 40: true, 107: true, 226: true, 228: true, 246: true, 271: true}

// unfinished is the code of a mutation that failed; its message has the cause's.
const unfinished = 341

var causeCode = regexp.MustCompile(`Code: (\d+)\.`)

var inTable = regexp.MustCompile("in table `?\\w+`?\\.`?(\\w+)`? \\(")

// brokenTable returns the table of which an error says that a part cannot be
// read; "" if it says nothing of the kind.
func brokenTable(err error) string {
	var e *clickhouse.Exception
	if !errors.As(err, &e) {
		return ""
	}
	cause := e.Code
	if m := causeCode.FindStringSubmatch(e.Message); m != nil && cause == unfinished {
		n, _ := strconv.ParseInt(m[1], 10, 32) // digits; a code that is too large is none
		cause = int32(n)
	}
	if !unreadable[cause] {
		return ""
	}
	if m := inTable.FindStringSubmatch(e.Message); m != nil {
		return m[1]
	}
	return ""
}

// reload makes ClickHouse look at a table's parts again.
//
// A merge or mutation that meets a full disk may put a part into use whose files
// are empty (26.7): from then on each question that reads it fails, also when
// there is room again. When a table is loaded, what cannot be read is set aside,
// and the parts that it was made of come back, if they are still there; a repair
// brings the rest from the log. Nothing is deleted.
func (d *Database) reload(ctx context.Context, table string) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	known, err := d.ours(ctx, table)
	if err != nil || !known {
		return err
	}
	if err := d.exec(ctx, "reload "+table, "DETACH TABLE IF EXISTS "+table+" SYNC"); err != nil {
		return errors.Join(err, d.attachAgain(ctx, table))
	}
	if err := d.attachAgain(ctx, table); err != nil {
		return err
	}
	d.log.Warn("a table had a part that cannot be read; it was loaded again", "table", table)
	d.metrics.reloaded.WithLabelValues(table).Inc()
	return nil
}

// attachAgain attaches a table that may be detached, also if ctx has ended: the
// table must not stay away.
func (d *Database) attachAgain(ctx context.Context, table string) error {
	return d.exec(context.WithoutCancel(ctx), "reload "+table, "ATTACH TABLE IF NOT EXISTS "+table)
}

// ours says whether a name is that of a table of the database now: it is to be
// put into statements.
func (d *Database) ours(ctx context.Context, table string) (bool, error) {
	var rows []struct {
		N uint64 `ch:"n"`
	}
	if err := d.Query(ctx, &rows, "SELECT count() AS n FROM system.tables WHERE database = currentDatabase() AND name = ? AND engine LIKE '%MergeTree'", table); err != nil {
		return false, err
	}
	if len(rows) != 1 {
		return false, fmt.Errorf("look for %s: %d rows, want 1", table, len(rows))
	}
	return rows[0].N == 1, nil
}

// reattach attaches what a program that died in between has left detached.
func (d *Database) reattach(ctx context.Context) error {
	var rows []struct {
		Name string `ch:"name"`
	}
	if err := d.Query(ctx, &rows, "SELECT table AS name FROM system.detached_tables WHERE database = currentDatabase() AND NOT is_permanently"); err != nil {
		return err
	}
	for _, r := range rows {
		if err := d.attachAgain(ctx, r.Name); err != nil {
			return err
		}
	}
	return nil
}
