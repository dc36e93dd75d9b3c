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

// table is a table that the log fills, and its statements.
type table struct {
	name   string
	row    any            // zero value of its rows
	takers []func() taker // by column
	key    string         // first column of its order: the second token of its events' subjects
	insert string
	lookup string // event_id and place of the rows that have an event_id of the batch

	streams []string // whose events fill it; if several, each row names its own
}

// batchTable is the name by which a lookup knows the batch's events.
const batchTable = "batch"

// tables returns every table that the log fills, in the order of schemas.
func tables() []*table {
	var all []*table
	for _, t := range schemas.Tables() {
		all = append(all, newTable(t))
	}
	return all
}

func newTable(s schemas.Table) *table {
	t := &table{name: s.Name, row: s.Row}
	switch kind, _, _ := strings.Cut(s.Name, "_"); kind {
	case "job":
		t.key, t.streams = "job_id", []string{schemas.StreamJob}
	case "node":
		t.key, t.streams = "node", []string{schemas.StreamNode}
	case "regressor":
		t.key, t.streams = "target", []string{schemas.StreamRegressor}
	}
	place := "event_id, sequence"
	if t.name == "job_advice" { // JOB in logs from before advice had a stream of its own
		t.streams = []string{schemas.StreamJob, schemas.StreamAdvice}
		place += ", stream"
	}
	t.insert, t.takers = insertInto(t.name, s.Row), takers(reflect.TypeOf(s.Row))
	t.lookup = fmt.Sprintf("SELECT %s FROM %s WHERE %s IN (SELECT key FROM %s) AND event_id IN (SELECT event_id FROM %s)",
		place, t.name, t.key, batchTable, batchTable)
	if t.name == "node_sample" {
		// Jobs are many and short, nodes few and endless: without the time, each
		// lookup would read all that a node ever sent. A sample has one instant.
		t.lookup += " AND at BETWEEN fromUnixTimestamp64Nano(?, 'UTC') AND fromUnixTimestamp64Nano(?, 'UTC')"
	}
	return t
}

// holds reports whether events of a stream fill the table.
func (t *table) holds(stream string) bool { return slices.Contains(t.streams, stream) }

// of returns the condition that a row is of a stream, in whose sequences it counts.
func (t *table) of(stream string) string {
	if len(t.streams) == 1 {
		return "1"
	}
	return fmt.Sprintf("stream = '%s'", stream)
}

// rowOf returns the row of an event; ok is false for one of another table.
func (t *table) rowOf(e schemas.Event) (row any, ok bool) {
	name, row, ok := schemas.RowOf(e)
	return row, ok && name == t.name
}

// insertInto returns the statement that inserts rows into a table by name.
func insertInto(name string, row any) string {
	return fmt.Sprintf("INSERT INTO %s (%s)", name, strings.Join(columnNames(reflect.TypeOf(row)), ", "))
}

// columnNames returns the ch tags of a row's fields.
func columnNames(row reflect.Type) []string {
	var names []string
	for _, field := range columnFields(row) {
		names = append(names, row.FieldByIndex(field).Tag.Get("ch"))
	}
	return names
}

// columnFields returns where in a row each column is, those of embedded structs in
// their place.
func columnFields(row reflect.Type) [][]int {
	var fields [][]int
	for _, f := range reflect.VisibleFields(row) {
		if !f.Anonymous && f.Tag.Get("ch") != "" {
			fields = append(fields, f.Index)
		}
	}
	return fields
}

// group is what one table gets of a batch: rows of different events, in the
// order of the log.
type group struct {
	table *table
	items []item
	from  time.Time // earliest instant among them
	until time.Time // latest
}

// item is one row and what identifies it.
type item struct {
	id       string
	key      string
	stream   string // if rows of its table name it
	sequence uint64
	at       time.Time // when it happened
	row      any
}

// tabulate sorts the records of a batch of a stream into the tables' order. Of several
// records with one event_id it takes the first, and counts the others as copies.
// Records that no table holds are left out.
func tabulate(all []*table, stream string, records []bus.Record) (groups []*group, copies map[string]int) {
	type identity struct{ table, id string }
	byName := make(map[string]*group)
	seen := make(map[identity]bool, len(records))
	copies = make(map[string]int)
	for i := range records {
		r := &records[i]
		name, row, ok := schemas.RowOf(r.Event)
		if !ok {
			continue
		}
		of := identity{name, r.Event.ID()}
		if seen[of] {
			copies[name]++
			continue
		}
		seen[of] = true
		g := byName[name]
		if g == nil {
			g = &group{}
			byName[name] = g
		}
		g.add(stream, r, row)
	}
	for _, t := range all {
		if g := byName[t.name]; g != nil {
			g.table = t
			groups = append(groups, g)
		}
	}
	return groups, copies
}

// add puts a record of a stream, and its row, into the group.
func (g *group) add(stream string, r *bus.Record, row any) {
	_, rest, _ := strings.Cut(r.Subject, ".")
	key, _, _ := strings.Cut(rest, ".")
	it := item{id: r.Event.ID(), key: key, at: r.Event.Stamped().At, sequence: r.Sequence, row: row}
	if a, ok := row.(*schemas.AdviceRow); ok {
		a.Stream, it.stream = stream, stream
	}
	g.put(it)
}

func (g *group) put(it item) {
	if len(g.items) == 0 || it.at.Before(g.from) {
		g.from = it.at
	}
	if len(g.items) == 0 || it.at.After(g.until) {
		g.until = it.at
	}
	if len(g.items) == cap(g.items) { // append would grow a long slice by a quarter, and copy it each time
		g.items = slices.Grow(g.items, max(16, len(g.items)))
	}
	g.items = append(g.items, it)
}

// without returns the group's rows but those that found shows elsewhere in the
// table. A row found at its own sequence is this batch's own, from an attempt before.
func (g *group) without(found []place) []any {
	at := make(map[string][]place, len(found))
	for _, f := range found {
		at[f.EventID] = append(at[f.EventID], f)
	}
	rows := make([]any, 0, len(g.items))
	for i := range g.items {
		it := &g.items[i]
		own := place{it.id, it.stream, it.sequence}
		if !slices.ContainsFunc(at[it.id], func(p place) bool { return p != own }) {
			rows = append(rows, it.row)
		}
	}
	return rows
}

// missing returns the events that were found nowhere.
func (g *group) missing(found []place) (items []item) {
	there := make(map[string]bool, len(found))
	for _, f := range found {
		there[f.EventID] = true
	}
	for i := range g.items {
		if !there[g.items[i].id] {
			items = append(items, g.items[i])
		}
	}
	return items
}

func rowsOf(items []item) []any {
	rows := make([]any, len(items))
	for i := range items {
		rows[i] = items[i].row
	}
	return rows
}

// place is where a table has an event.
type place struct {
	EventID  string `ch:"event_id"`
	Stream   string `ch:"stream"` // if rows of its table name it
	Sequence uint64 `ch:"sequence"`
}
