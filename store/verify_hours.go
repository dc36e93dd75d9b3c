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

	"courier/bus"
	"courier/schemas"
)

type logHours struct {
	stream   string
	first    uint64 // first sequence in the log; position+1 if the log has none up to position
	position uint64 // last sequence to compare
	events   uint64
	tables   map[string]map[int64]*Hour // by table and hour
}

// hourOf returns the hour of a time, counted from 1970.
func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// hash returns the first eight bytes of an event_id's MD5, which is halfMD5 in ClickHouse. It
// protects against mistakes, not against attacks.
func hash(id string) uint64 {
	sum := md5.Sum([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// readLog passes the events from one sequence of a stream to another to handle. It omits events
// that the log has dropped, and waits for an unreachable server.
func (v *Verifier) readLog(
	ctx context.Context, stream string, from, last uint64, handle func(bus.Record) error,
) error {
	if from > last {
		return nil
	}
	o := bus.FollowOptions{Stream: stream, From: from, Until: last}
	return v.bus.Read(ctx, o, handle)
}

// readLogHours counts the events of a stream up to a position.
func (v *Verifier) readLogHours(ctx context.Context, stream string, position uint64) (*logHours, error) {
	l := &logHours{
		stream:   stream,
		first:    position + 1,
		position: position,
		tables:   make(map[string]map[int64]*Hour),
	}
	for _, t := range v.tables {
		l.tables[t.name] = make(map[int64]*Hour)
	}

	const progressInterval = 1000 // messages
	read := uint64(0)
	err := v.readLog(ctx, stream, 1, position, func(r bus.Record) error {
		l.first = min(l.first, r.Sequence)
		if read++; read%progressInterval == 0 {
			v.options.Progress(stream, r.Sequence-l.first, position-l.first+1)
		}
		if name, _, ok := schemas.RowOf(r.Event); ok && v.database.shard.owns(r.Subject) {
			l.add(name, &r)
		}
		return nil
	})
	return l, err
}

// add counts an event.
func (l *logHours) add(table string, r *bus.Record) {
	hours, hour := l.tables[table], hourOf(r.Event.Stamped().At)
	h := hours[hour]
	if h == nil {
		h = &Hour{At: hourStart(hour), from: r.Sequence}
		hours[hour] = h
	}
	h.messages++
	h.LogEvents++
	h.LogChecksum += Checksum(hash(r.Event.ID()))
	h.last = r.Sequence
	l.events++
}

func (l *logHours) eventsOutside(table string, kept hourRange) (events uint64) {
	for hour, h := range l.tables[table] {
		if !kept.contains(hour) {
			events += h.messages
		}
	}
	return events
}

// join adds the log's counts to the hours of a table, and marks the hours that differ.
func (l *logHours) join(table string, hours map[int64]*Hour, kept hourRange) (all []*Hour) {
	for hour, logged := range l.tables[table] {
		if !kept.contains(hour) {
			continue
		}
		h := hours[hour]
		if h == nil {
			h = &Hour{At: logged.At}
			hours[hour] = h
		}
		h.LogEvents, h.LogChecksum = logged.LogEvents, logged.LogChecksum
		h.messages, h.from, h.last = logged.messages, logged.from, logged.last
	}
	for _, hour := range slices.Sorted(maps.Keys(hours)) {
		h := hours[hour]
		h.suspect = h.LogEvents != h.TableEvents ||
			h.LogChecksum != h.TableChecksum ||
			h.rows != h.TableEvents+h.Older
		all = append(all, h)
	}
	return all
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

// hourStart returns the start of an hour that is counted from 1970.
func hourStart(hour int64) time.Time { return time.Unix(hour*3600, 0).UTC() }

// window is a range of hours whose rows are compared at once. If a single hour has too many
// rows, its window is divided into slices.
type window struct {
	hourRange
	slices uint64 // at least 1
}

// sliceCondition is the SQL condition that an event belongs to a slice of the window.
func (w window) sliceCondition(i uint64) string {
	if w.slices <= 1 {
		return "1"
	}
	return fmt.Sprintf("halfMD5(event_id) %% %d = %d", w.slices, i)
}

// hourSQL is hourOf in SQL.
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

// windows divides the kept hours of a table into windows by the number of rows.
func (v *Verifier) windows(
	ctx context.Context, log *logHours, t *eventTable, kept hourRange,
) ([]window, error) {
	var counts []struct {
		Hour int64  `ch:"hour"`
		Rows uint64 `ch:"n"`
	}
	err := v.database.Query(ctx, &counts, fmt.Sprintf(
		"SELECT %s AS hour, count() AS n FROM %s "+
			"WHERE %s AND sequence <= %d GROUP BY hour ORDER BY hour",
		hourSQL, t.name, kept.condition("at"), log.position))
	if err != nil {
		return nil, err
	}
	rows := make(map[int64]uint64, len(counts))
	for _, c := range counts {
		rows[c.Hour] = c.Rows
	}
	return divide(kept, rows, v.options.windowRows), nil
}

// divide tiles a range with windows of at most maxRows rows. An hour with more rows gets its
// own window.
func divide(all hourRange, rows map[int64]uint64, maxRows uint64) (windows []window) {
	w, size := window{hourRange: hourRange{all.from, all.from}, slices: 1}, uint64(0)
	endWindow := func(until int64) {
		if w.until = until; w.until > w.from {
			windows = append(windows, w)
		}
		w, size = window{hourRange: hourRange{until, until}, slices: 1}, 0
	}
	for _, hour := range slices.Sorted(maps.Keys(rows)) {
		n := rows[hour]
		if size > 0 && size+n > maxRows {
			endWindow(hour)
		}
		if size += n; n > maxRows {
			endWindow(hour)
			w.slices = (n + maxRows - 1) / maxRows
			endWindow(hour + 1)
		}
	}
	endWindow(all.until)
	return windows
}

// addTableHours adds the counts of a table in a window to its hours. It distinguishes events by
// hour and hash, one slice at a time.
func (v *Verifier) addTableHours(
	ctx context.Context, log *logHours, t *eventTable, w window, hours map[int64]*Hour,
) error {
	for i := range w.slices {
		var found []struct {
			Hour     int64  `ch:"hour"`
			Rows     uint64 `ch:"all_rows"`
			Events   uint64 `ch:"events"`
			Checksum uint64 `ch:"checksum"`
			Older    uint64 `ch:"older"`
		}
		where := w.condition("at") + " AND " + w.sliceCondition(i)
		err := v.database.Query(ctx, &found, fmt.Sprintf(
			"SELECT hour, sum(copies) AS all_rows, countIf(place >= %[1]d) AS events, "+
				"sumIf(hash, place >= %[1]d) AS checksum, countIf(place < %[1]d) AS older "+
				"FROM (%s) GROUP BY hour",
			log.first, distinctEvents(t, where, log.position)))
		if err != nil {
			return err
		}
		for _, f := range found {
			h := hours[f.Hour]
			if h == nil {
				h = &Hour{At: hourStart(f.Hour)}
				hours[f.Hour] = h
			}
			h.rows += f.Rows
			h.TableEvents += f.Events
			h.TableChecksum += Checksum(f.Checksum)
			h.Older += f.Older
		}
	}
	return nil
}

// distinctEvents selects the events of a table up to a position: hour, hash, number of rows
// (copies), and sequence of the first row (place).
func distinctEvents(t *eventTable, where string, position uint64) string {
	return fmt.Sprintf("SELECT %s AS hour, halfMD5(event_id) AS hash, count() AS copies, "+
		"min(sequence) AS place FROM %s WHERE %s AND sequence <= %d GROUP BY hour, hash",
		hourSQL, t.name, where, position)
}
