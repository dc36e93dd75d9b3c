package store

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

type eventTable struct {
	name   string
	key    string // first column of the sorting key: second token of the subjects
	insert string
	lookup string // selects the stored rows with an event_id of a batch
	stream string // stream whose events fill it
}

const batchTable = "batch"

// tables returns every table that the log fills, in the order of schemas.
func tables() []*eventTable {
	var all []*eventTable
	for _, t := range schemas.Tables() {
		all = append(all, newTable(t))
	}
	return all
}

func newTable(s schemas.Table) *eventTable {
	t := &eventTable{name: s.Name}
	switch kind, _, _ := strings.Cut(s.Name, "_"); kind {
	case "job":
		t.key, t.stream = "job_id", schemas.StreamJob
	case "node":
		t.key, t.stream = "node", schemas.StreamNode
	case "regressor":
		t.key, t.stream = "target", schemas.StreamRegressor
	}
	if t.name == "job_advice" {
		t.stream = schemas.StreamAdvice
	}
	row := reflect.TypeOf(s.Row)
	t.insert = fmt.Sprintf("INSERT INTO %s (%s)", t.name, strings.Join(columnNames(row), ", "))
	t.lookup = fmt.Sprintf("SELECT event_id, sequence FROM %s WHERE %s IN (SELECT key FROM %s) "+
		"AND event_id IN (SELECT event_id FROM %[3]s)", t.name, t.key, batchTable)
	if t.name == "node_sample" {
		// The rows of a job are few, but the rows of a node grow forever: without the time range, a
		// lookup would read all samples of its nodes. A duplicate has the timestamp of its
		// original.
		t.lookup += " AND at BETWEEN fromUnixTimestamp64Nano(?, 'UTC')" +
			" AND fromUnixTimestamp64Nano(?, 'UTC')"
	}
	return t
}

// columnNames returns the columns of a row type, including those of embedded structs.
func columnNames(row reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(row) {
		if name := f.Tag.Get("ch"); !f.Anonymous && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// tableRows are the rows of a batch for one table, in the order of the log, without duplicates.
type tableRows struct {
	table *eventTable
	rows  []eventRow
	from  time.Time // earliest timestamp
	until time.Time // latest timestamp
}

type eventRow struct {
	id       string // event_id
	key      string // value of the column table.key
	sequence uint64
	at       time.Time // of the event
	row      any
}

type storedRow struct {
	EventID  string `ch:"event_id"`
	Sequence uint64 `ch:"sequence"`
}

// groupByTable groups the records of a batch in the order of all. Of several records with the
// same event_id it takes the first and counts the others as duplicates, by table. It leaves out
// events without a table.
func groupByTable(all []*eventTable, records []bus.Record) (groups []*tableRows, duplicates map[string]int) {
	type identity struct{ table, id string }
	byName := make(map[string]*tableRows)
	seen := make(map[identity]bool, len(records))
	duplicates = make(map[string]int)
	for i := range records {
		r := &records[i]
		name, row, ok := schemas.RowOf(r.Event)
		if !ok {
			continue
		}
		event := identity{name, r.Event.ID()}
		if seen[event] {
			duplicates[name]++
			continue
		}
		seen[event] = true
		g := byName[name]
		if g == nil {
			g = &tableRows{}
			byName[name] = g
		}
		g.append(newEventRow(r, row))
	}

	for _, t := range all {
		if g := byName[t.name]; g != nil {
			g.table = t
			groups = append(groups, g)
		}
	}
	return groups, duplicates
}

func newEventRow(r *bus.Record, row any) eventRow {
	_, rest, _ := strings.Cut(r.Subject, ".")
	key, _, _ := strings.Cut(rest, ".")
	return eventRow{
		id:       r.Event.ID(),
		key:      key,
		sequence: r.Sequence,
		at:       r.Event.Stamped().At,
		row:      row,
	}
}

func (g *tableRows) append(r eventRow) {
	if len(g.rows) == 0 || r.at.Before(g.from) {
		g.from = r.at
	}
	if len(g.rows) == 0 || r.at.After(g.until) {
		g.until = r.at
	}
	if len(g.rows) == cap(g.rows) { // double: append grows a long slice by a quarter only
		g.rows = slices.Grow(g.rows, max(16, len(g.rows)))
	}
	g.rows = append(g.rows, r)
}

// withoutDuplicates drops rows that are stored at a different sequence. A row that is stored at its
// own sequence was written by an earlier attempt of the batch.
func (g *tableRows) withoutDuplicates(stored []storedRow) []any {
	byID := rowsByID(stored)
	rows := make([]any, 0, len(g.rows))
	for i := range g.rows {
		r := &g.rows[i]
		isOther := func(s storedRow) bool { return s.Sequence != r.sequence }
		if !slices.ContainsFunc(byID[r.id], isOther) {
			rows = append(rows, r.row)
		}
	}
	return rows
}

// missing returns the rows that are not stored. An earlier attempt may have written a row to too
// few replicas. Then it is missing, and its insert waits for the others.
func (g *tableRows) missing(stored []storedRow) (rows []eventRow) {
	byID := rowsByID(stored)
	for _, r := range g.rows {
		if len(byID[r.id]) == 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

func rowsByID(stored []storedRow) map[string][]storedRow {
	byID := make(map[string][]storedRow, len(stored))
	for _, s := range stored {
		byID[s.EventID] = append(byID[s.EventID], s)
	}
	return byID
}

func rowValues(rows []eventRow) []any {
	values := make([]any, len(rows))
	for i := range rows {
		values[i] = rows[i].row
	}
	return values
}
