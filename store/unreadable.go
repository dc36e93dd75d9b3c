package store

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// unreadableCodes are ClickHouse errors for a part that it cannot read from its disk: data that
// ends too early, wrong checksums, missing or short files, corrupt data.
var unreadableCodes = map[int32]bool{
	32:  true, // ATTEMPT_TO_READ_AFTER_EOF
	33:  true, // CANNOT_READ_ALL_DATA
	40:  true, // CHECKSUM_DOESNT_MATCH
	107: true, // FILE_DOESNT_EXIST
	226: true, // NO_FILE_IN_DATA_PART
	228: true, // BAD_SIZE_OF_FILE_IN_DATA_PART
	246: true, // CORRUPTED_DATA
	271: true, // CANNOT_DECOMPRESS
}

// codeUnfinished is the code of a failed mutation. Its message contains the code of the cause.
const codeUnfinished = 341

var (
	causeCode   = regexp.MustCompile(`Code: (\d+)\.`)
	tableOfPart = regexp.MustCompile("in table `?\\w+`?\\.`?(\\w+)`? \\(")
)

// unreadableTable returns the table whose part ClickHouse cannot read, or "" for other errors.
func unreadableTable(err error) string {
	var e *clickhouse.Exception
	if !errors.As(err, &e) {
		return ""
	}
	cause := e.Code
	if m := causeCode.FindStringSubmatch(e.Message); m != nil && cause == codeUnfinished {
		n, _ := strconv.ParseInt(m[1], 10, 32) // only digits; a number out of range is not a code
		cause = int32(n)
	}
	if !unreadableCodes[cause] {
		return ""
	}
	if m := tableOfPart.FindStringSubmatch(e.Message); m != nil {
		return m[1]
	}
	return ""
}

// reload detaches and attaches a table, so that ClickHouse checks its parts.
//
// A merge or mutation on a full disk may activate a part with empty files (26.7). From then on
// every query that reads the part fails, even when the disk has space again. When ClickHouse
// attaches the table, it detaches unreadable parts and uses their source parts if these still
// exist. A repair restores the other rows from the log. Nothing is deleted.
func (d *Database) reload(ctx context.Context, table string) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	exists, err := d.hasTable(ctx, table)
	if err != nil || !exists {
		return err
	}
	detach := "DETACH TABLE IF EXISTS " + table + " SYNC"
	if err := d.exec(ctx, "reload "+table, detach); err != nil {
		return errors.Join(err, d.attach(ctx, table))
	}
	if err := d.attach(ctx, table); err != nil {
		return err
	}
	d.log.Warn("table with an unreadable part was reloaded", "table", table)
	d.metrics.reloaded.WithLabelValues(table).Inc()
	return nil
}

// attach attaches a table, even if ctx has ended: the table must not stay detached.
func (d *Database) attach(ctx context.Context, table string) error {
	attach := "ATTACH TABLE IF NOT EXISTS " + table
	return d.exec(context.WithoutCancel(ctx), "reload "+table, attach)
}

// hasTable reports whether there is a table of this name, which then is safe in statements.
func (d *Database) hasTable(ctx context.Context, name string) (bool, error) {
	n, err := value[uint64](ctx, d, "SELECT count() FROM system.tables "+
		"WHERE database = currentDatabase() AND name = ? AND engine LIKE '%MergeTree'", name)
	return n == 1, err
}

func (d *Database) attachDetached(ctx context.Context) error {
	names, err := values[string](ctx, d, "SELECT table FROM system.detached_tables "+
		"WHERE database = currentDatabase() AND NOT is_permanently")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.attach(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
