package store

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

type rollUpCheck struct {
	*verifier
	rollUp
	source     *eventTable
	query      string            // of the view, reading sources only
	aggregates []columnAggregate // of its columns without the key
	written    uint64            // last sequence of the source's stream that a store has written
}

type columnAggregate struct {
	sql     string
	isFloat bool // its last digits depend on the order of a sum
}

type differingRow struct {
	Hour     int64  `ch:"hour"`   // 0 if the rows have no hour
	Key      string `ch:"name"`   // a tuple in SQL
	Rolled   uint64 `ch:"rolled"` // rows in the roll-up
	Computed uint64 `ch:"made"`   // rows that the view computes
}

// rollUpPart is the part of a roll-up that is compared at once: a window, or a slice of the keys
// if the rows have no hour.
type rollUpPart struct {
	sourceCondition string // for rows of the table
	condition       string // for rows of the roll-up, and those that its view computes
}

func (v *verifier) verifyRollUps(
	ctx context.Context, t *eventTable, written uint64, kept hourRange, windows []hourRange,
) (all []*RollUpReport, err error) {
	queries := make(map[string]string)
	for _, r := range rollUps[t.name] {
		query, err := v.database.viewQuery(ctx, r)
		if err != nil {
			return nil, err
		}
		for name, source := range queries {
			reference := regexp.MustCompile(`FROM \S+\.` + name + ` AS `)
			query = reference.ReplaceAllLiteralString(query, "FROM ("+source+") AS ")
		}
		queries[r.name] = query

		c := &rollUpCheck{verifier: v, rollUp: r, source: t, query: query, written: written}
		report, err := c.verify(ctx, kept, windows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, report)
	}
	return all, nil
}

func (c *rollUpCheck) verify(ctx context.Context, kept hourRange, windows []hourRange) (*RollUpReport, error) {
	var err error
	if c.aggregates, err = c.readAggregates(ctx); err != nil {
		return nil, err
	}
	if c.time != "" {
		own, err := c.database.keptHours(ctx, c.name, c.time)
		if err != nil {
			return nil, err
		}
		kept.from = max(kept.from, own.from)
		kept.until = min(kept.until, own.until, math.MaxUint32/3600)
	}

	report := &RollUpReport{
		RollUp: c.name,
		Table:  c.source.name,
		From:   hourStart(kept.from),
		Hours:  []*RollUpHour{},
	}
	for i, w := range windows {
		c.options.Progress(c.name, uint64(i), uint64(len(windows)))
		p, ok := c.part(w, kept, i, len(windows))
		if !ok {
			continue
		}
		rows, busy, err := c.differingRows(ctx, p)
		if err != nil {
			return nil, err
		}
		report.Hours = append(report.Hours, groupByHour(rows)...)
		report.Busy += busy
	}
	return report, nil
}

// part returns what is compared with the window of index i. ok is false if that is nothing.
func (c *rollUpCheck) part(w hourRange, kept hourRange, i, windows int) (p rollUpPart, ok bool) {
	if c.time == "" {
		slice := func(key string) string {
			return fmt.Sprintf("cityHash64(%s) %% %d = %d", key, windows, i)
		}
		return rollUpPart{slice(c.sourceKey), slice(c.key)}, true
	}
	r := hourRange{max(w.from, kept.from), min(w.until, kept.until)}
	return rollUpPart{r.condition("at"), r.secondsCondition(c.time)}, r.from < r.until
}

func (r differingRow) start() time.Time {
	if r.Hour == 0 {
		return time.Time{}
	}
	return hourStart(r.Hour)
}

// groupByHour counts rows, which are sorted by hour.
func groupByHour(rows []differingRow) (hours []*RollUpHour) {
	for _, r := range rows {
		if len(hours) == 0 || !hours[len(hours)-1].At.Equal(r.start()) {
			hours = append(hours, &RollUpHour{At: r.start()})
		}
		h := hours[len(hours)-1]
		switch {
		case r.Rolled == 0:
			h.Missing++
		case r.Computed == 0:
			h.Extra++
		default:
			h.Wrong++
		}
		appendLimited(&h.Keys, r.Key)
	}
	return hours
}

var aggregateType = regexp.MustCompile(`^(Simple)?AggregateFunction\((\w+)(\([^()]*\))?, `)

func (c *rollUpCheck) readAggregates(ctx context.Context) (all []columnAggregate, err error) {
	var columns []struct {
		Name string `ch:"name"`
		Type string `ch:"type"`
	}
	err = c.database.Query(ctx, &columns, "SELECT name, type FROM system.columns "+
		"WHERE database = currentDatabase() AND table = ? ORDER BY position", c.name)
	if err != nil {
		return nil, err
	}
	for _, column := range columns {
		m := aggregateType.FindStringSubmatch(column.Type)
		if m == nil {
			continue // part of the key
		}
		function := m[2]
		if m[1] == "" {
			function += "Merge"
		}
		all = append(all, columnAggregate{
			sql:     fmt.Sprintf("%s%s(%s)", function, m[3], column.Name),
			isFloat: strings.Contains(column.Type, "Float"),
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no aggregates", c.name)
	}
	return all, nil
}

// differingRows returns the rows of a part that differ, by hour and key. A batch reaches the
// table before the roll-up. Therefore the comparison of a row counts only if the table has no row
// for it beyond the position from before the comparison. busy counts the others: they are recent, or
// their batch is still being written.
func (c *rollUpCheck) differingRows(
	ctx context.Context, p rollUpPart,
) (rows []differingRow, busy uint64, err error) {
	position, err := c.database.Position(ctx, c.source.stream)
	if err != nil {
		return nil, 0, err
	}
	err = c.database.Query(ctx, &rows, c.comparison(p))
	if err != nil || len(rows) == 0 {
		return nil, 0, err
	}
	written, err := values[string](ctx, c.database, fmt.Sprintf(
		"SELECT DISTINCT toString(%s) FROM %s WHERE sequence > %d AND %s",
		c.sourceKey, c.source.name, max(position, c.written), p.sourceCondition))
	if err != nil {
		return nil, 0, err
	}
	inFlight := make(map[string]bool, len(written))
	for _, key := range written {
		inFlight[key] = true
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r differingRow) bool { return inFlight[r.Key] })
	return rows, uint64(all - len(rows)), nil
}

// comparison selects the differing rows of a part. It compares floating-point values to nine digits.
func (c *rollUpCheck) comparison(p rollUpPart) string {
	var values, pairs, unequal []string
	for i, a := range c.aggregates {
		values = append(values, fmt.Sprintf("%s AS v%d", a.sql, i))
		pairs = append(pairs, fmt.Sprintf(
			"anyIf(v%d, side = 0) AS a%[1]d, anyIf(v%[1]d, side = 1) AS b%[1]d", i))
		differ := fmt.Sprintf("a%d != b%[1]d", i)
		if a.isFloat {
			differ = fmt.Sprintf("abs(a%d - b%[1]d) > 1e-9 * greatest(abs(a%[1]d), abs(b%[1]d))", i)
		}
		unequal = append(unequal, fmt.Sprintf("isNull(a%d) != isNull(b%[1]d) OR ifNull(%s, 0)", i, differ))
	}

	hour := "toInt64(0)"
	if c.time != "" {
		hour = "toInt64(intDiv(toUnixTimestamp(" + c.time + "), 3600))"
	}
	side := func(n int, from string) string {
		return fmt.Sprintf("SELECT %d AS side, %s AS id, %s AS its_hour, %s FROM %s "+
			"WHERE %s GROUP BY id, its_hour",
			n, c.key, hour, strings.Join(values, ", "), from, p.condition)
	}
	return fmt.Sprintf("SELECT its_hour AS hour, toString(id) AS name, rolled, made FROM ("+
		"SELECT id, its_hour, countIf(side = 0) AS rolled, countIf(side = 1) AS made, %s "+
		"FROM (%s UNION ALL %s) GROUP BY id, its_hour) "+
		"WHERE rolled != made OR %s ORDER BY hour, name SETTINGS additional_table_filters = {'%s': '%s'}",
		strings.Join(pairs, ", "), side(0, c.name), side(1, "("+c.query+")"),
		strings.Join(unequal, " OR "), c.source.name, strings.ReplaceAll(p.sourceCondition, "'", `\'`))
}
