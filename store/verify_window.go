package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"courier/schemas"
)

// span is a range of hours, counted from 1970: from the first up to, not
// including, the second.
type span struct{ from, until int64 }

func (s span) has(hour int64) bool { return hour >= s.from && hour < s.until }

// within is the condition that the hours of column, an instant, are of the span.
func (s span) within(column string) string {
	const nanos = int64(time.Hour)
	from, until := max(s.from, 0), min(s.until, math.MaxInt64/nanos)
	return fmt.Sprintf("(%s >= fromUnixTimestamp64Nano(toInt64(%d), 'UTC') AND %[1]s < fromUnixTimestamp64Nano(toInt64(%[3]d), 'UTC'))", column, from*nanos, until*nanos)
}

// window is a span of hours whose rows are looked at together, in slices if one
// hour alone has more than fit.
type window struct {
	span
	slices uint64 // at least 1
}

// slice is the condition that an event belongs to one slice of the window.
func (w window) slice(i uint64) string {
	if w.slices <= 1 {
		return "1"
	}
	return fmt.Sprintf("halfMD5(event_id) %% %d = %d", w.slices, i)
}

// hourSQL is the hour of a row, as hourOf has it.
const hourSQL = "intDiv(toUnixTimestamp64Nano(at), 3600000000000)"

// current returns an error unless the tables are those that this program knows.
func (d *Database) current(ctx context.Context) error {
	all, err := schemas.Migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	applied, err := d.migration(ctx)
	if err != nil {
		return err
	}
	if applied > len(all) {
		return fmt.Errorf("%w: it has migration %d, the program ends at %d", ErrNewer, applied, len(all))
	}
	if applied < len(all) {
		return fmt.Errorf("the database has %d of %d migrations: a store that starts brings it forward", applied, len(all))
	}
	return nil
}

var ttl = regexp.MustCompile(` TTL (.*?)(?: SETTINGS |$)`)

// life returns the hours whose rows a table keeps for at least an hour more, and
// that began after since ago (0: any). at is the name of the table's instant. A
// time to live is counted in seconds of 32 bits: it ends what is later than that
// in ways of its own.
func (d *Database) life(ctx context.Context, table, at string, since time.Duration) (span, error) {
	all := span{0, math.MaxInt64}
	if since > 0 {
		all.from = hourOf(time.Now().Add(-since)) + 1
	}
	var engine []struct {
		Full string `ch:"engine_full"`
	}
	if err := d.Query(ctx, &engine, "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = ?", table); err != nil {
		return all, err
	}
	if len(engine) != 1 {
		return all, fmt.Errorf("%d tables have the name %s, want 1", len(engine), table)
	}
	m := ttl.FindStringSubmatch(engine[0].Full)
	if m == nil {
		return all, nil
	}
	const years = 30 // longer than any table is kept
	var kept []struct {
		Hours uint64 `ch:"hours"`
		Now   uint32 `ch:"present"`
	}
	err := d.Query(ctx, &kept, fmt.Sprintf("SELECT max(number) AS hours, toUnixTimestamp(now()) AS present FROM (SELECT number, toDateTime64(toStartOfHour(now('UTC')), 9, 'UTC') - toIntervalHour(number) AS %s FROM numbers(%d)) "+
		"WHERE %s > now('UTC') + toIntervalHour(1)", at, years*366*24, m[1]))
	if err != nil {
		return all, fmt.Errorf("read its time to live: %w", err)
	}
	hours := int64(kept[0].Hours)
	all.from = max(all.from, int64(kept[0].Now)/3600-hours+1)
	all.until = math.MaxUint32/3600 - hours - 48
	return all, nil
}

// windows cuts a table's life into windows by the number of its rows.
func (v *Verifier) windows(ctx context.Context, log *tally, t *table, life span) ([]window, error) {
	var counts []struct {
		Hour int64  `ch:"hour"`
		Rows uint64 `ch:"n"`
	}
	err := v.database.Query(ctx, &counts, fmt.Sprintf("SELECT %s AS hour, count() AS n FROM %s WHERE %s AND %s AND sequence <= %d GROUP BY hour ORDER BY hour",
		hourSQL, t.name, life.within("at"), t.of(log.stream), log.position))
	if err != nil {
		return nil, err
	}
	rows := make(map[int64]uint64, len(counts))
	for _, c := range counts {
		rows[c.Hour] = c.Rows
	}
	return cut(life, rows, v.options.window), nil
}

// cut tiles a span with windows of at most so many rows, where one hour alone has
// not more.
func cut(life span, rows map[int64]uint64, most uint64) (all []window) {
	w, have := window{span: span{life.from, life.from}, slices: 1}, uint64(0)
	end := func(until int64) {
		if w.until = until; w.until > w.from {
			all = append(all, w)
		}
		w, have = window{span: span{until, until}, slices: 1}, 0
	}
	for _, hour := range slices.Sorted(maps.Keys(rows)) {
		n := rows[hour]
		if have > 0 && have+n > most {
			end(hour)
		}
		if have += n; n > most {
			end(hour)
			w.slices = (n + most - 1) / most
			end(hour + 1)
		}
	}
	end(life.until)
	return all
}

// sum adds what a table has in a window to its hours. Events are told apart by
// hour and hash, a slice at a time.
func (v *Verifier) sum(ctx context.Context, log *tally, t *table, w window, hours map[int64]*Hour) error {
	for i := range w.slices {
		var found []struct {
			Hour     int64  `ch:"hour"`
			Rows     uint64 `ch:"all_rows"`
			Events   uint64 `ch:"events"`
			Checksum uint64 `ch:"checksum"`
			Older    uint64 `ch:"older"`
		}
		err := v.database.Query(ctx, &found, fmt.Sprintf("SELECT hour, sum(copies) AS all_rows, countIf(place >= %[1]d) AS events, sumIf(hash, place >= %[1]d) AS checksum, countIf(place < %[1]d) AS older FROM (%s) GROUP BY hour",
			log.first, distinct(t, w.within("at")+" AND "+w.slice(i)+" AND "+t.of(log.stream), log.position)))
		if err != nil {
			return err
		}
		for _, f := range found {
			h := hours[f.Hour]
			if h == nil {
				h = &Hour{At: time.Unix(f.Hour*3600, 0).UTC()}
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

// distinct selects the events of a table up to a position: hour, hash, the number
// of their rows, and the first one's sequence.
func distinct(t *table, where string, position uint64) string {
	return fmt.Sprintf("SELECT %s AS hour, halfMD5(event_id) AS hash, count() AS copies, min(sequence) AS place FROM %s WHERE %s AND sequence <= %d GROUP BY hour, hash", hourSQL, t.name, where, position)
}
