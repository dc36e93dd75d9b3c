package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

type eventTable struct {
	name    string
	key     string // first column of the sorting key: second token of the subjects
	columns []reflect.StructField
	insert  string
	lookup  string // selects the stored rows with an event_id of a batch
	stream  string // stream whose events fill it
}

const batchTable = "batch"

func tables() []*eventTable {
	var all []*eventTable
	for _, t := range schemas.Tables() {
		all = append(all, newTable(t))
	}
	return all
}

func newTable(s schemas.Table) *eventTable {
	row := reflect.TypeOf(s.Row)
	t := &eventTable{name: s.Name, columns: columnsOf(row)}
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

// columnsOf returns the fields of a row type that are columns, including those of embedded structs.
func columnsOf(row reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(row), func(f reflect.StructField) bool {
		return f.Anonymous || f.Tag.Get("ch") == ""
	})
}

func columnNames(row reflect.Type) (names []string) {
	for _, c := range columnsOf(row) {
		names = append(names, c.Tag.Get("ch"))
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

// findStored returns the rows of the table that have an event_id of the group. On replicas, it
// returns those that most replicas have: see replicaSettings.
func (d *Database) findStored(ctx context.Context, g *tableRows) ([]storedRow, error) {
	batch, err := ext.NewTable(batchTable, ext.Column("key", "String"), ext.Column("event_id", "String"))
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
	}
	for i := range g.rows {
		if err := batch.Append(g.rows[i].key, g.rows[i].id); err != nil {
			return nil, fmt.Errorf("look up %s: %w", g.table.name, err)
		}
	}

	var args []any
	if g.table.name == "node_sample" {
		args = []any{g.from.UnixNano(), g.until.UnixNano()}
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithExternalTable(batch))
	ctx, lookup := d.begin(ctx, "lookup in "+g.table.name, nil)
	var found []storedRow
	if err := lookup.end(d.conn.Select(ctx, &found, g.table.lookup, args...)); err != nil {
		return nil, err
	}
	return found, nil
}

// insertSettings make an insert idempotent: ClickHouse skips a block with a known token, in the
// table and in each roll-up.
//
//   - Asynchronous inserts would separate blocks from their tokens.
//   - A batch may hold samples of any number of months, and therefore of partitions.
//
// Without a token, ClickHouse inserts the rows in any case.
func insertSettings(token string) clickhouse.Settings {
	s := clickhouse.Settings{
		"insert_deduplicate":              0,
		"async_insert":                    0,
		"max_partitions_per_insert_block": 0,
	}
	if token != "" {
		s["insert_deduplicate"] = 1
		s["insert_deduplication_token"] = token
		s["deduplicate_blocks_in_dependent_materialized_views"] = 1
	}
	return s
}

// insert inserts rows as one block. A repetition with the same token changes nothing.
func (d *Database) insert(ctx context.Context, t *eventTable, rows []any, token string) error {
	ctx, statement := d.begin(ctx, "insert into "+t.name, insertSettings(token))
	return statement.end(d.sendBlock(ctx, t, rows))
}

// sendBlock sends rows as one block. clickhouse-go 2.50 watches a batch in a goroutine that waits for
// the end of the batch or of its context. If both end before the goroutine runs, it may close a
// connection that another statement has already taken. So the context of a batch that was sent never
// ends.
func (d *Database) sendBlock(ctx context.Context, t *eventTable, rows []any) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	b, err := d.conn.PrepareBatch(sending, t.insert)
	if err != nil {
		return err
	}
	defer b.Close()
	// AppendStruct would look up each column by name in each row: a third of the time for a sample.
	values := make([]any, len(t.columns))
	for _, row := range rows {
		fields := reflect.ValueOf(row).Elem()
		for i := range t.columns {
			values[i] = fields.FieldByIndex(t.columns[i].Index).Interface()
		}
		if err := b.Append(values...); err != nil {
			return fmt.Errorf("encode a row of %s: %w", t.name, err)
		}
	}
	return b.Send()
}

// recordPosition records that the tables hold a stream up to a sequence. It needs no quorum of
// replicas, for which the writers of several streams would wait for each other: a position that is
// lost only hides rows until the next one.
func (d *Database) recordPosition(ctx context.Context, stream string, sequence uint64) error {
	settings := clickhouse.Settings{"async_insert": 0, "insert_quorum": 0}
	ctx, running := d.begin(ctx, "record position", settings)
	return running.end(d.conn.Exec(ctx,
		"INSERT INTO log_position SELECT ?, ?, now64(9, 'UTC')", stream, sequence))
}

// Position returns the sequence up to which the tables hold a stream without gaps, or 0.
func (d *Database) Position(ctx context.Context, stream string) (uint64, error) {
	return value[uint64](ctx, d, "SELECT max(sequence) FROM log_position WHERE stream = ?", stream)
}

// stopWriter ends the running statements of the writer of ctx's stream. They may belong to a
// previous writer that crashed or lost its lease, or to this writer after a timeout or a lost
// connection. If an insert continued after its table and before its roll-ups, a roll-up that is
// rebuilt in the meantime would count its rows twice.
func (d *Database) stopWriter(ctx context.Context) error {
	prefix, ok := ctx.Value(writerKey{}).(string)
	if !ok {
		return nil // not a writer
	}
	statement := fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') SYNC", prefix)
	ctx = context.WithValue(ctx, writerKey{}, nil)
	if !d.hasReplicas() {
		return d.exec(ctx, "stop the previous writer", statement)
	}
	return d.execOnReplicas(ctx, "stop the previous writer", statement)
}

// execOnReplicas fails if no replica is available, or an available one refuses the statement.
func (d *Database) execOnReplicas(ctx context.Context, kind, statement string) error {
	var failures []error
	for _, server := range d.options.Addr {
		err := d.visit(server, "default", func(replica *Database) error {
			return replica.exec(ctx, kind, statement)
		})
		if errors.Is(err, ErrRefused) {
			return err
		}
		if err != nil {
			d.log.Warn("replica is not available", "action", kind, "server", server, "error", err)
			failures = append(failures, err)
		}
	}
	if len(failures) == len(d.options.Addr) {
		return errors.Join(failures...)
	}
	return nil
}
