package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rolled compares one roll-up with what its view makes of the table now.
type rolled struct {
	*Verifier
	rollUp
	source     *table
	definition string   // of the table alone, also where the view reads another roll-up
	figures    []figure // of its columns but the key
	written    uint64   // last sequence of the source's stream that stores have written
}

// figure is what a column of a roll-up comes to.
type figure struct {
	sql   string
	float bool // the order of its sum changes the last digits
}

// wrongRow is a row of a roll-up that differs.
type wrongRow struct {
	Hour   int64  `ch:"hour"`   // 0 where rows have none
	Key    string `ch:"name"`   // a tuple, as SQL writes it
	Rolled uint64 `ch:"rolled"` // rows of the roll-up
	Made   uint64 `ch:"made"`   // rows of the table's view
}

// part is what is looked at together: a window, or a slice of a roll-up's keys
// where these have no hour.
type part struct {
	table  string // condition on the table's rows
	rollUp string // on the roll-up's, and those that its view makes
}

// rollUps compares the roll-ups of a table with it, and with Repair mends them.
func (v *Verifier) rollUps(ctx context.Context, t *table, written uint64, life span, windows []window) (all []*RollUpReport, err error) {
	definitions := make(map[string]string)
	for _, r := range rollUps[t.name] {
		definition, err := v.database.definition(ctx, r)
		if err != nil {
			return nil, err
		}
		for name, made := range definitions { // a roll-up of another: of what that one should say
			definition = regexp.MustCompile(`FROM \S+\.`+name+` AS `).ReplaceAllLiteralString(definition, "FROM ("+made+") AS ")
		}
		definitions[r.name] = definition
		u := &rolled{Verifier: v, rollUp: r, source: t, definition: definition, written: written}
		report, err := u.verify(ctx, life, windows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, report)
	}
	return all, nil
}

func (u *rolled) verify(ctx context.Context, life span, windows []window) (*RollUpReport, error) {
	var err error
	if u.figures, err = u.columns(ctx); err != nil {
		return nil, err
	}
	if u.time != "" {
		own, err := u.database.life(ctx, u.name, u.time, u.options.Since)
		if err != nil {
			return nil, err
		}
		life = span{max(life.from, own.from), min(life.until, own.until, math.MaxUint32/3600)}
	}
	report := &RollUpReport{RollUp: u.name, Table: u.source.name, From: time.Unix(life.from*3600, 0).UTC(), Hours: []*RollUpHour{}}
	for i, w := range windows {
		u.options.Progress(u.name, uint64(i), uint64(len(windows)))
		p, ok := u.part(w, life, i, len(windows))
		if !ok {
			continue
		}
		rows, busy, err := u.wrong(ctx, p)
		if err != nil {
			return nil, err
		}
		hours := byHour(rows)
		if len(hours) > 0 && u.options.Repair {
			if busy, err = u.repair(ctx, p, rows, hours); err != nil {
				return nil, err
			}
		}
		report.Hours = append(report.Hours, hours...)
		report.Busy += uint64(len(busy))
	}
	return report, nil
}

// repair mends rows that differ, notes in their hours what came of it, and returns the rows that
// are busy.
func (u *rolled) repair(
	ctx context.Context, p part, rows []wrongRow, hours []*RollUpHour,
) (busy []wrongRow, err error) {
	left, busy, err := u.mend(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	for _, h := range hours {
		within := func(r wrongRow) bool { return at(r.Hour).Equal(h.At) }
		h.Mended = !slices.ContainsFunc(left, within) && !slices.ContainsFunc(busy, within)
		u.log.Info("roll-up repaired", "table", u.name, "hour", h.At,
			"missing", h.Missing, "wrong", h.Wrong, "extra", h.Extra, "mended", h.Mended)
	}
	return busy, nil
}

// part returns what of the roll-up is looked at with one of all windows.
func (u *rolled) part(w window, life span, i, windows int) (p part, ok bool) {
	if u.time == "" {
		slice := func(key string) string { return fmt.Sprintf("cityHash64(%s) %% %d = %d", key, windows, i) }
		return part{slice(u.of), slice(u.key)}, true
	}
	s := span{max(w.from, life.from), min(w.until, life.until)}
	return part{s.within("at"), fmt.Sprintf("(%s >= toDateTime(%d, 'UTC') AND %[1]s < toDateTime(%[3]d, 'UTC'))", u.time, s.from*3600, s.until*3600)}, s.from < s.until
}

// at returns the begin of an hour, the zero time for 0.
func at(hour int64) time.Time {
	if hour == 0 {
		return time.Time{}
	}
	return time.Unix(hour*3600, 0).UTC()
}

// byHour sums rows up to hours.
func byHour(rows []wrongRow) (hours []*RollUpHour) {
	for _, r := range rows {
		at := at(r.Hour)
		if len(hours) == 0 || !hours[len(hours)-1].At.Equal(at) {
			hours = append(hours, &RollUpHour{At: at})
		}
		h := hours[len(hours)-1]
		switch {
		case r.Rolled == 0:
			h.Missing++
		case r.Made == 0:
			h.Extra++
		default:
			h.Wrong++
		}
		note(&h.Keys, r.Key)
	}
	return hours
}

var aggregate = regexp.MustCompile(`^(Simple)?AggregateFunction\((\w+)(\([^()]*\))?, `)

// columns returns how the roll-up's columns become figures.
func (u *rolled) columns(ctx context.Context) (figures []figure, err error) {
	var columns []struct {
		Name string `ch:"name"`
		Type string `ch:"type"`
	}
	if err := u.database.Query(ctx, &columns, "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = ? ORDER BY position", u.name); err != nil {
		return nil, err
	}
	for _, c := range columns {
		m := aggregate.FindStringSubmatch(c.Type)
		if m == nil {
			continue // part of the key
		}
		function := m[2]
		if m[1] == "" {
			function += "Merge"
		}
		figures = append(figures, figure{fmt.Sprintf("%s%s(%s)", function, m[3], c.Name), strings.Contains(c.Type, "Float")})
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("%s has no aggregates", u.name)
	}
	return figures, nil
}

const (
	looks = 20                    // at rows that batches reach at that moment
	pause = 50 * time.Millisecond // between them
)

// wrong returns the rows of a span that differ, by hour and key. A batch reaches
// the table before the roll-up. So a row is judged only by a look during which
// nothing behind the position had a part in it: all that was behind when the look
// ended is seen by moving. A row that batches reach at every look is busy: it is of
// this very moment, or of a batch that takes long.
func (u *rolled) wrong(ctx context.Context, p part) (rows, busy []wrongRow, err error) {
	var open map[string]bool // not judged yet; nil: all
	err = u.repeatedly(ctx, func() (bool, error) {
		position, err := u.position(ctx)
		if err != nil {
			return false, err
		}
		busy = nil
		var differ []wrongRow
		if err := u.database.Query(ctx, &differ, u.comparison(p)); err != nil || len(differ) == 0 {
			return true, err
		}
		moving, err := u.moving(ctx, p, position)
		if err != nil {
			return false, err
		}
		left := make(map[string]bool)
		for _, r := range differ {
			switch {
			case open != nil && !open[r.Key]:
			case moving[r.Key]:
				left[r.Key] = true
				busy = append(busy, r)
			default:
				rows = append(rows, r)
			}
		}
		open = left
		return len(open) == 0, nil
	})
	slices.SortFunc(rows, func(a, b wrongRow) int { return cmp.Or(cmp.Compare(a.Hour, b.Hour), strings.Compare(a.Key, b.Key)) })
	return rows, busy, err
}

// repeatedly calls look until it is done, at most so many times.
func (u *rolled) repeatedly(ctx context.Context, look func() (done bool, err error)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range looks {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// position is up to where nobody writes the source any more.
func (u *rolled) position(ctx context.Context) (uint64, error) {
	position, err := u.database.Position(ctx, u.source.streams[0])
	return max(position, u.written), err
}

// moving returns the keys of a span in which something behind a position has a part.
func (u *rolled) moving(ctx context.Context, p part, position uint64) (map[string]bool, error) {
	var keys []struct {
		Key string `ch:"name"`
	}
	err := u.database.Query(ctx, &keys, fmt.Sprintf("SELECT DISTINCT toString(%s) AS name FROM %s WHERE sequence > %d AND %s", u.of, u.source.name, position, p.table))
	all := make(map[string]bool, len(keys))
	for _, k := range keys {
		all[k.Key] = true
	}
	return all, err
}

// comparison selects the rows that differ. Sums and means of floating point are
// compared to nine digits.
func (u *rolled) comparison(p part) string {
	var values, pairs, unequal []string
	for i, f := range u.figures {
		values = append(values, fmt.Sprintf("%s AS v%d", f.sql, i))
		pairs = append(pairs, fmt.Sprintf("anyIf(v%d, side = 0) AS a%[1]d, anyIf(v%[1]d, side = 1) AS b%[1]d", i))
		differ := fmt.Sprintf("a%d != b%[1]d", i)
		if f.float {
			differ = fmt.Sprintf("abs(a%d - b%[1]d) > 1e-9 * greatest(abs(a%[1]d), abs(b%[1]d))", i)
		}
		unequal = append(unequal, fmt.Sprintf("isNull(a%d) != isNull(b%[1]d) OR ifNull(%s, 0)", i, differ))
	}
	hour := "toInt64(0)"
	if u.time != "" {
		hour = "toInt64(intDiv(toUnixTimestamp(" + u.time + "), 3600))"
	}
	side := func(n int, from string) string {
		return fmt.Sprintf("SELECT %d AS side, %s AS id, %s AS its_hour, %s FROM %s WHERE %s GROUP BY id, its_hour", n, u.key, hour, strings.Join(values, ", "), from, p.rollUp)
	}
	return fmt.Sprintf("SELECT its_hour AS hour, toString(id) AS name, rolled, made FROM ("+
		"SELECT id, its_hour, countIf(side = 0) AS rolled, countIf(side = 1) AS made, %s FROM (%s UNION ALL %s) GROUP BY id, its_hour) WHERE rolled != made OR %s ORDER BY hour, name%s",
		strings.Join(pairs, ", "), side(0, u.name), side(1, "("+u.definition+")"), strings.Join(unequal, " OR "), u.only(p.table))
}

// only is the setting that limits what a statement reads of the table.
func (u *rolled) only(where string) string {
	return fmt.Sprintf(" SETTINGS additional_table_filters = {'%s': '%s'}", u.source.name, strings.ReplaceAll(where, "'", `\'`))
}
