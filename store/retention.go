package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ErrDeletesRows reports a change of a retention that would delete rows.
var ErrDeletesRows = errors.New("rows would be deleted")

// MaxRetentionDays bounds a retention. ClickHouse computes the end of a row in 32-bit seconds, which
// end in 2106.
const MaxRetentionDays = 30 * 366

// Retention is how long a table keeps its rows. ClickHouse deletes older ones in the background.
type Retention struct {
	Shard  int    `json:"shard,omitempty"` // from 1; 0: not a cluster
	Table  string `json:"table"`
	Period string `json:"keeps"`         // such as "90 days"; "forever"
	Wanted string `json:"new,omitempty"` // a period to which it may be changed

	Rows    uint64     `json:"rows"`
	Bytes   uint64     `json:"bytes"` // on disk
	Oldest  *time.Time `json:"oldest,omitempty"`
	Older   uint64     `json:"older"`            // rows beyond Wanted, or beyond Period without it
	Months  uint64     `json:"older_partitions"` // partitions with such rows; a partition is a month
	Changed bool       `json:"changed"`
}

// retentionColumns returns the tables whose retention can be set, with their column of time. The
// rows of job_run, which belong to no hour, are computed from all rows of job_epoch, so these two
// keep theirs.
func retentionColumns() (names []string, column map[string]string) {
	column = map[string]string{}
	for _, t := range tables() {
		isSource := false
		for _, r := range rollUps[t.name] {
			isSource = isSource || r.time == ""
		}
		if !isSource {
			names, column[t.name] = append(names, t.name), "toDateTime(at)"
		}
		for _, r := range rollUps[t.name] {
			if r.time != "" {
				names, column[r.name] = append(names, r.name), r.time
			}
		}
	}
	return names, column
}

// ParseRetentions reads new retentions by table: days such as "30d", or "forever". The result has
// days, 0 for "forever".
func ParseRetentions(texts map[string]string) (map[string]int, error) {
	names, column := retentionColumns()
	days := map[string]int{}
	for table, text := range texts {
		if column[table] == "" {
			return nil, fmt.Errorf("the retention of %.80q cannot be set, want one of %s",
				table, strings.Join(names, ", "))
		}
		n := 0
		if text != "forever" {
			var unit string
			_, err := fmt.Sscanf(text, "%d%s", &n, &unit)
			if err != nil || unit != "d" || n < 1 || n > MaxRetentionDays {
				return nil, fmt.Errorf("%s=%.40s: want 1d to %dd, or forever", table, text, MaxRetentionDays)
			}
		}
		days[table] = n
	}
	return days, nil
}

// wantedExpression returns the SQL for the end of a row after a retention in days.
func wantedExpression(column string, days int) string {
	return fmt.Sprintf("%s + INTERVAL %d DAY", column, days)
}

// Retentions returns the retention of each table that can have one, and what a change to the given
// days would delete. It changes nothing.
func (d *Database) Retentions(ctx context.Context, wanted map[string]int) ([]Retention, error) {
	if d.shard == nil {
		if err := d.checkSingle(ctx); err != nil {
			return nil, err
		}
	}
	names, column := retentionColumns()
	var found []struct {
		Name  string `ch:"name"`
		Full  string `ch:"engine_full"`
		Bytes uint64 `ch:"bytes"`
	}
	err := d.Query(ctx, &found, "SELECT name, engine_full, ifNull(total_bytes, 0) AS bytes "+
		"FROM system.tables WHERE database = currentDatabase() AND has(?, name)", names)
	if err != nil {
		return nil, fmt.Errorf("read the retention: %w", err)
	}
	var all []Retention
	for _, t := range found {
		r := Retention{Shard: d.shard.number(), Table: t.Name, Bytes: t.Bytes, Period: "forever"}
		expires := ""
		if m := ttlClause.FindStringSubmatch(t.Full); m != nil {
			expires = m[1]
			r.Period = periodText(expires)
		}
		if days, isWanted := wanted[t.Name]; isWanted {
			r.Wanted, expires = "forever", ""
			if days > 0 {
				r.Wanted, expires = fmt.Sprintf("%d days", days), wantedExpression(column[t.Name], days)
			}
		}
		if err := d.countOlder(ctx, &r, column[t.Name], expires); err != nil {
			return nil, fmt.Errorf("count the rows of %s: %w", t.Name, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Retention) int {
		return slices.Index(names, a.Table) - slices.Index(names, b.Table)
	})
	return all, nil
}

// countOlder counts the rows that have expired; none have with the empty expression.
func (d *Database) countOlder(ctx context.Context, r *Retention, column, expires string) error {
	isOlder := "0"
	if expires != "" {
		isOlder = "(" + expires + ") <= now('UTC')"
	}
	var counts []struct {
		Rows   uint64    `ch:"n"`
		Oldest time.Time `ch:"oldest"`
		Older  uint64    `ch:"older"`
		Months uint64    `ch:"months"`
	}
	err := d.Query(ctx, &counts, fmt.Sprintf("SELECT count() AS n, min(%s) AS oldest, "+
		"countIf(%s) AS older, uniqExactIf(_partition_id, %[2]s) AS months FROM %s",
		column, isOlder, r.Table))
	if err != nil {
		return err
	}
	r.Rows, r.Older, r.Months = counts[0].Rows, counts[0].Older, counts[0].Months
	if r.Rows > 0 {
		oldest := counts[0].Oldest.UTC()
		r.Oldest = &oldest
	}
	return nil
}

var ttlInterval = regexp.MustCompile(`toInterval([A-Z][a-z]+)\((\d+)\)`)

// periodText returns the period of a TTL expression, or the expression if it is not one of ours.
func periodText(expression string) string {
	m := ttlInterval.FindStringSubmatch(expression)
	if m == nil {
		return expression
	}
	return m[2] + " " + strings.ToLower(m[1]) + "s"
}

// SetRetention changes the retention of a table to a number of days, 0 for no limit. ClickHouse then
// deletes older rows in the background. Ask Retentions before how many there are.
func (d *Database) SetRetention(ctx context.Context, table string, days int) error {
	_, column := retentionColumns()
	if column[table] == "" {
		return fmt.Errorf("the retention of %.80q cannot be set", table)
	}
	statement := fmt.Sprintf("ALTER TABLE %s MODIFY TTL %s", table, wantedExpression(column[table], days))
	if days == 0 {
		limited, err := d.Retentions(ctx, nil)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(limited, func(r Retention) bool {
			return r.Table == table && r.Period == "forever"
		}) {
			return nil // REMOVE TTL fails without one
		}
		statement = "ALTER TABLE " + table + " REMOVE TTL"
	}
	// The existing rows get the new end, too, so that a longer retention keeps them.
	if err := d.migrateStatement(ctx, statement); err != nil {
		return fmt.Errorf("set the retention of %s: %w", table, err)
	}
	return nil
}

// ApplyRetentions changes the retentions to the given days on each database, a server or the shards
// of a cluster, and returns them. It changes nothing, and the error matches ErrDeletesRows, if rows
// would be deleted that are kept now, unless mayDelete.
func ApplyRetentions(
	ctx context.Context, databases []*Database, wanted map[string]int, mayDelete bool,
) ([]Retention, error) {
	all, err := ReadRetentions(ctx, databases, wanted)
	if err != nil {
		return nil, err
	}
	if !mayDelete {
		for _, r := range all {
			if r.Wanted != "" && r.Older > 0 && r.Wanted != r.Period {
				return all, fmt.Errorf("%w: %d rows of %s are older than %s",
					ErrDeletesRows, r.Older, r.Table, r.Wanted)
			}
		}
	}
	i := 0
	for _, d := range databases {
		for ; i < len(all) && all[i].Shard == d.shard.number(); i++ {
			r := &all[i]
			if r.Wanted == "" || r.Wanted == r.Period {
				continue
			}
			if err := d.SetRetention(ctx, r.Table, wanted[r.Table]); err != nil {
				return all, err
			}
			r.Changed = true
		}
	}
	return all, nil
}

// ReadRetentions returns Database.Retentions of each database.
func ReadRetentions(
	ctx context.Context, databases []*Database, wanted map[string]int,
) (all []Retention, err error) {
	for _, d := range databases {
		some, err := d.Retentions(ctx, wanted)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// WriteRetentions writes a table of retentions.
func WriteRetentions(out io.Writer, all []Retention) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "table\tkeeps\tnew\trows\tMiB\toldest row\tolder rows\tin months")
	for _, r := range all {
		place, oldest := "", ""
		if r.Shard > 0 {
			place = fmt.Sprintf("shard %d ", r.Shard)
		}
		if r.Oldest != nil {
			oldest = r.Oldest.Format(time.DateOnly)
		}
		wanted := r.Wanted
		if r.Changed {
			wanted += " (changed)"
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%d\t%.1f\t%s\t%d\t%d\n", place, r.Table, r.Period, wanted,
			r.Rows, float64(r.Bytes)/(1<<20), oldest, r.Older, r.Months)
	}
	return t.Flush()
}
