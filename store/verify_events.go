package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

type streamCheck struct {
	*verifier
	report *StreamReport
	tables []*tableCheck

	start  uint64 // first sequence of the window
	last   uint64 // last sequence that was read
	events uint64 // of the window
}

type tableCheck struct {
	*eventTable
	kept   hourRange
	report *TableReport
	hours  map[int64]*Hour
	logged map[eventKey]eventRow // events of the window, without their rows
}

// eventKey identifies an event at a position of the log.
type eventKey struct {
	sequence uint64
	id       string
}

func (t *tableCheck) hour(number int64) *Hour {
	h := t.hours[number]
	if h == nil {
		h = &Hour{At: hourStart(number)}
		t.hours[number] = h
	}
	return h
}

// run reads the log once. It waits for an unreachable server.
func (c *streamCheck) run(ctx context.Context) error {
	c.start = c.report.First
	if c.report.First <= c.report.Last {
		o := bus.FollowOptions{Stream: c.report.Stream, From: c.report.First, Until: c.report.Last}
		err := c.bus.Read(ctx, o, func(r bus.Record) error { return c.add(ctx, r) })
		if err != nil {
			return err
		}
		if err := c.compareWindow(ctx, c.report.Last); err != nil {
			return err
		}
	}
	for _, t := range c.tables {
		for _, number := range slices.Sorted(maps.Keys(t.hours)) {
			t.report.Hours = append(t.report.Hours, t.hours[number])
		}
	}
	return nil
}

func (c *streamCheck) add(ctx context.Context, r bus.Record) error {
	if c.events >= c.options.windowRows && r.Sequence > c.last {
		if err := c.compareWindow(ctx, r.Sequence-1); err != nil {
			return err
		}
	}
	c.last = r.Sequence
	name, _, ok := schemas.RowOf(r.Event)
	if !ok || !c.database.shard.owns(r.Subject) {
		return nil
	}
	const progressInterval = 1000 // events
	if c.report.Events++; c.report.Events%progressInterval == 0 {
		c.options.Progress(c.report.Stream, r.Sequence-c.report.First, c.report.Last-c.report.First+1)
	}
	t := c.tables[slices.IndexFunc(c.tables, func(t *tableCheck) bool { return t.name == name })]
	row := newEventRow(&r, nil)
	if !t.kept.contains(hourOf(row.at)) {
		t.report.Expired++
		return nil
	}
	t.logged[eventKey{row.sequence, row.id}] = row
	c.events++
	return nil
}

func (c *streamCheck) compareWindow(ctx context.Context, last uint64) error {
	for _, t := range c.tables {
		if err := c.compareRows(ctx, t, last); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if err := c.findMissing(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		clear(t.logged)
	}
	c.start, c.events = last+1, 0
	return nil
}

// compareRows removes the events of the table's rows from the logged ones. A row whose event the log does
// not have is an extra one, unless the log has dropped its message since the start.
func (c *streamCheck) compareRows(ctx context.Context, t *tableCheck, last uint64) error {
	query := fmt.Sprintf("SELECT DISTINCT sequence, event_id, %s FROM %s "+
		"WHERE sequence BETWEEN %d AND %d AND %s",
		hourSQL, t.name, c.start, last, t.kept.condition("at"))
	first := uint64(0) // sequence in the log now; 0: not read yet
	return c.database.eachRow(ctx, query, nil, func(rows driver.Rows) error {
		var key eventKey
		var hour int64
		if err := rows.Scan(&key.sequence, &key.id, &hour); err != nil {
			return err
		}
		if logged, ok := t.logged[key]; ok {
			h := t.hour(hourOf(logged.at))
			h.LogEvents++
			h.TableEvents++
			delete(t.logged, key)
			return nil
		}
		if first == 0 {
			var err error
			if first, _, err = c.bus.Bounds(ctx, c.report.Stream); err != nil {
				return err
			}
		}
		h := t.hour(hour)
		if key.sequence < first {
			h.Older++
			return nil
		}
		h.TableEvents++
		h.Extra++
		appendLimited(&h.ExtraIDs, key.id)
		return nil
	})
}

// findMissing counts the logged events without a row that the table has at no other sequence: the store
// drops a duplicate of an event.
func (c *streamCheck) findMissing(ctx context.Context, t *tableCheck) error {
	unseen := slices.SortedFunc(maps.Values(t.logged), func(a, b eventRow) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), strings.Compare(a.id, b.id))
	})
	seen := make(map[string]bool)
	const maxLookup = 5000 // events
	for chunk := range slices.Chunk(unseen, maxLookup) {
		g := &tableRows{table: t.eventTable}
		for _, row := range chunk {
			g.append(row)
		}
		stored, err := c.database.findStored(ctx, g)
		if err != nil {
			return err
		}
		for _, row := range g.missing(stored) {
			if seen[row.id] {
				continue
			}
			seen[row.id] = true
			h := t.hour(hourOf(row.at))
			h.LogEvents++
			h.Missing++
			appendLimited(&h.MissingIDs, row.id)
		}
	}
	return nil
}

// countDuplicates counts, in a window of hours, the duplicate rows and the rows whose messages the log had
// dropped at the start.
func (c *streamCheck) countDuplicates(ctx context.Context, t *tableCheck, w hourRange) error {
	var found []struct {
		Hour   int64    `ch:"hour"`
		Older  uint64   `ch:"older"`
		Double uint64   `ch:"double"`
		IDs    []string `ch:"ids"`
	}
	err := c.database.Query(ctx, &found, fmt.Sprintf(
		"SELECT hour, countIf(place < %d) AS older, toUInt64(sum(copies) - count()) AS double, "+
			"groupArrayIf(%d)(event_id, copies > 1) AS ids "+
			"FROM (SELECT %s AS hour, event_id, count() AS copies, min(sequence) AS place FROM %s "+
			"WHERE %s AND sequence <= %d GROUP BY hour, event_id ORDER BY event_id) "+
			"GROUP BY hour HAVING older > 0 OR double > 0",
		c.report.First, maxListed, hourSQL, t.name, w.condition("at"), c.report.Last))
	for _, f := range found {
		h := t.hour(f.Hour)
		h.Older, h.Double, h.DoubleIDs = f.Older, f.Double, f.IDs
	}
	return err
}

// hourOf returns the hour of a time, counted from 1970.
func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

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

// keptHours returns the hours whose rows a table keeps for at least another hour. timeColumn is the
// column of the TTL.
//
// A TTL is computed in 32-bit seconds. Rows beyond that expire unpredictably, so the range ends
// before.
func (d *Database) keptHours(ctx context.Context, table, timeColumn string) (hourRange, error) {
	all := hourRange{0, math.MaxInt64}
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
func (v *verifier) windows(ctx context.Context, t *tableCheck, last uint64) ([]hourRange, error) {
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
