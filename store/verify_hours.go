package store

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"
)

// hourOf returns the hour of a time, counted from 1970.
func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// hash returns the first eight bytes of an event_id's MD5. It protects against mistakes, not against
// attacks.
func hash(id string) uint64 {
	sum := md5.Sum([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// hourRange is a range of hours, counted from 1970: from <= hour < until.
type hourRange struct{ from, until int64 }

func (r hourRange) contains(hour int64) bool { return hour >= r.from && hour < r.until }

// condition is the SQL condition that the time in a column lies in the range.
func (r hourRange) condition(column string) string {
	const nanos = int64(time.Hour)
	from, until := max(r.from, 0), min(r.until, math.MaxInt64/nanos)
	return fmt.Sprintf("(%s >= fromUnixTimestamp64Nano(toInt64(%d), 'UTC') "+
		"AND %[1]s < fromUnixTimestamp64Nano(toInt64(%[3]d), 'UTC'))",
		column, from*nanos, until*nanos)
}

// secondsCondition is condition for a column of whole seconds.
func (r hourRange) secondsCondition(column string) string {
	const last = math.MaxUint32 / 3600 // a column of 32 bits has no later hour
	return fmt.Sprintf("(%s >= toDateTime(%d, 'UTC') AND %[1]s < toDateTime(%[3]d, 'UTC'))",
		column, max(r.from, 0)*3600, min(r.until, last)*3600)
}

func hourStart(hour int64) time.Time { return time.Unix(hour*3600, 0).UTC() }

const hourSQL = "intDiv(toUnixTimestamp64Nano(at), 3600000000000)"

var ttlClause = regexp.MustCompile(` TTL (.*?)(?: SETTINGS |$)`)

// keptHours returns the hours whose rows a table keeps for at least another hour, limited to
// hours that started within since (0: no limit). timeColumn is the column of the TTL.
//
// A TTL is computed in 32-bit seconds. Rows beyond that expire unpredictably, so the range ends
// before.
func (d *Database) keptHours(
	ctx context.Context, table, timeColumn string, since time.Duration,
) (hourRange, error) {
	all := hourRange{0, math.MaxInt64}
	if since > 0 {
		all.from = hourOf(time.Now().Add(-since)) + 1
	}

	engine, err := value[string](ctx, d, "SELECT engine_full FROM system.tables "+
		"WHERE database = currentDatabase() AND name = ?", table)
	if err != nil {
		return all, err
	}
	m := ttlClause.FindStringSubmatch(engine)
	if m == nil {
		return all, nil
	}

	const maxYears = 30 // longer than any TTL
	var kept []struct {
		Hours uint64 `ch:"hours"`
		Now   uint32 `ch:"present"`
	}
	err = d.Query(ctx, &kept, fmt.Sprintf(
		"SELECT max(number) AS hours, toUnixTimestamp(now()) AS present FROM ("+
			"SELECT number, toDateTime64(toStartOfHour(now('UTC')), 9, 'UTC') "+
			"- toIntervalHour(number) AS %s FROM numbers(%d)) "+
			"WHERE %s > now('UTC') + toIntervalHour(1)", timeColumn, maxYears*366*24, m[1]))
	if err != nil {
		return all, fmt.Errorf("read the TTL of %s: %w", table, err)
	}
	hours := int64(kept[0].Hours)
	all.from = max(all.from, int64(kept[0].Now)/3600-hours+1)
	all.until = math.MaxUint32/3600 - hours - 48
	return all, nil
}

// windows divides the kept hours of a table into ranges by the number of rows.
func (v *Verifier) windows(ctx context.Context, t *tableCheck, last uint64) ([]hourRange, error) {
	var counts []struct {
		Hour int64  `ch:"hour"`
		Rows uint64 `ch:"n"`
	}
	err := v.database.Query(ctx, &counts, fmt.Sprintf(
		"SELECT %s AS hour, count() AS n FROM %s "+
			"WHERE %s AND sequence <= %d GROUP BY hour ORDER BY hour",
		hourSQL, t.name, t.kept.condition("at"), last))
	if err != nil {
		return nil, err
	}
	rows := make(map[int64]uint64, len(counts))
	for _, c := range counts {
		rows[c.Hour] = c.Rows
	}
	return divide(t.kept, rows, v.options.windowRows), nil
}

// divide tiles a range with windows of at most maxRows rows, unless a single hour has more.
func divide(all hourRange, rows map[int64]uint64, maxRows uint64) (windows []hourRange) {
	w, size := hourRange{all.from, all.until}, uint64(0)
	for _, hour := range slices.Sorted(maps.Keys(rows)) {
		if size > 0 && size+rows[hour] > maxRows {
			windows = append(windows, hourRange{w.from, hour})
			w.from, size = hour, 0
		}
		size += rows[hour]
	}
	return append(windows, w)
}
