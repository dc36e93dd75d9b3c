package schemas_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// sqlColumn is a column of a table or of a struct.
type sqlColumn struct{ Name, Type string }

var (
	createTable = regexp.MustCompile(
		`(?s)^CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\) (ENGINE = .*)$`,
	)
	addColumn = regexp.MustCompile(
		`(?s)^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (.*?)( AFTER (\w+))?$`,
	)
	repeatable = regexp.MustCompile(
		`^(CREATE (TABLE|VIEW|MATERIALIZED VIEW) IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE \w+\s+(ADD|DROP|MODIFY|COMMENT) COLUMN IF (NOT )?EXISTS|ALTER TABLE \w+ MODIFY (TTL|SETTING|COMMENT|QUERY))\s?`,
	)
	codec   = regexp.MustCompile(` CODEC\(.*\)$`)
	comment = regexp.MustCompile(` COMMENT '[^']*'`)
)

// described returns the tables after all migrations: the columns in order, and the rest of the
// definition.
func described(t *testing.T) (columns map[string][]sqlColumn, engines map[string]string) {
	t.Helper()
	columns, engines = make(map[string][]sqlColumn), make(map[string]string)
	for _, m := range schemas.Migrations() {
		for _, s := range m.Statements {
			if match := createTable.FindStringSubmatch(s); match != nil {
				columns[match[1]], engines[match[1]] = columnsOf(match[2]), match[3]
			}
			if match := addColumn.FindStringSubmatch(s); match != nil {
				columns[match[1]] = insertAfter(columns[match[1]], match[4], columnsOf(match[2]))
			}
		}
	}
	return columns, engines
}

// insertAfter inserts columns after the named one, or at the end.
func insertAfter(all []sqlColumn, name string, added []sqlColumn) []sqlColumn {
	at := slices.IndexFunc(all, func(c sqlColumn) bool { return c.Name == name })
	if at < 0 {
		at = len(all) - 1
	}
	return slices.Insert(all, at+1, added...)
}

// columnsOf parses a list of columns.
func columnsOf(list string) (all []sqlColumn) {
	for _, item := range splitTop(comment.ReplaceAllString(list, "")) {
		item = codec.ReplaceAllString(strings.TrimSpace(item), "")
		name, kind, _ := strings.Cut(item, " ")
		all = append(all, sqlColumn{strings.Trim(name, "`"), kind})
	}
	return all
}

// splitTop splits at commas outside parentheses.
func splitTop(list string) (items []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				items, from = append(items, list[from:i]), i+1
			}
		}
	}
	return append(items, list[from:])
}

// tagged returns the columns of a row's struct.
func tagged(row reflect.Type) (all []sqlColumn) {
	for i := range row.NumField() {
		f := row.Field(i)
		if f.Anonymous {
			all = append(all, tagged(f.Type)...)
		} else if name, ok := f.Tag.Lookup("ch"); ok {
			all = append(all, sqlColumn{name, sqlType(f.Type)})
		}
	}
	return all
}

// sqlType returns the ClickHouse type of a field.
func sqlType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "DateTime64(9, 'UTC')"
	case t.Kind() == reflect.Pointer:
		return "Nullable(" + sqlType(t.Elem()) + ")"
	case t.Kind() == reflect.Slice:
		return "Array(" + sqlType(t.Elem()) + ")"
	case t.Kind() == reflect.Map:
		return "Map(" + sqlType(t.Key()) + ", " + sqlType(t.Elem()) + ")"
	case t.Kind() == reflect.Uint32:
		return "UInt32"
	case t.Kind() == reflect.Uint64:
		return "UInt64"
	}
	return strings.ToUpper(t.Kind().String()[:1]) + t.Kind().String()[1:]
}

func TestTables_AreTheirStructs(t *testing.T) {
	columns, engines := described(t)
	for _, table := range schemas.Tables() {
		got := columns[table.Name]
		for i := range got { // LowCardinality is only a storage format
			got[i].Type = strings.ReplaceAll(got[i].Type, "LowCardinality(String)", "String")
		}
		if diff := cmp.Diff(tagged(reflect.TypeOf(table.Row)), got); diff != "" {
			t.Errorf("%s (-struct +table):\n%s", table.Name, diff)
		}
	}
	for name, engine := range engines {
		if name != "log_position" && !strings.Contains(engine,
			"non_replicated_deduplication_window") {
			t.Errorf("%s has no deduplication window: a batch that is repeated would count twice",
				name)
		}
	}
}

// If a row is a message, its columns have the JSON names of the fields of the message. Only the row of an
// advice leaves some out, and that of an end the output, which is for the readers of jobs.
func TestTables_HaveTheNamesOfTheMessages(t *testing.T) {
	isPart := false
	var check func(row reflect.Type)
	check = func(row reflect.Type) {
		for i := range row.NumField() {
			f := row.Field(i)
			if f.Anonymous {
				check(f.Type)
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			column := f.Tag.Get("ch")
			isLeftOut := column == "" && (isPart || name == "output")
			if name != "" && name != "-" && name != column && !isLeftOut {
				t.Errorf("%s.%s is %q in JSON and %q in its table", row.Name(), f.Name, name,
					column)
			}
		}
	}
	for _, table := range schemas.Tables() {
		isPart = table.Name == "job_advice"
		check(reflect.TypeOf(table.Row))
	}
}

func TestMigrations_AreNumberedAndMayBeRepeated(t *testing.T) {
	files, err := filepath.Glob("clickhouse/*.sql")
	if err != nil || len(files) != len(schemas.Migrations()) {
		t.Fatalf("%d migrations from %d files, error %v; want one per file",
			len(schemas.Migrations()), len(files), err)
	}
	for i, m := range schemas.Migrations() {
		if m.Number != i+1 || !strings.HasPrefix(m.Name, fmt.Sprintf("%04d_", i+1)) {
			t.Errorf("migration %d has the number %d and the name %s", i+1, m.Number, m.Name)
		}
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(m.Statements), strings.Count(string(text), ";\n"); got != want ||
			want == 0 {
			t.Errorf("%s has %d statements, want %d", m.Name, got, want)
		}
		for _, s := range m.Statements {
			if !repeatable.MatchString(s) {
				t.Errorf("%s: cannot be repeated after a crash: %.60q", m.Name, s)
			}
		}
	}
}

func TestRowOf_FindsTheTable(t *testing.T) {
	rows := make(map[string]reflect.Type)
	for _, table := range schemas.Tables() {
		rows[table.Name] = reflect.TypeOf(table.Row)
	}
	tests := []struct {
		event schemas.Event
		table string
	}{
		{
			&schemas.Submitted{}, "job_submitted",
		}, {
			&schemas.Started{}, "job_started",
		}, {&schemas.Epoch{}, "job_epoch"}, {&schemas.Ended{}, "job_ended"},
		{&schemas.Advice{}, "job_advice"}, {&schemas.Sample{}, "node_sample"}, {
			&schemas.Trained{}, "regressor_trained",
		}, {
			&schemas.Promoted{}, "regressor_promoted",
		}, {&schemas.Rejected{}, "regressor_rejected"}, {&schemas.Drift{}, "regressor_drift"},
		{&schemas.Alive{}, ""}, {
			&schemas.JobAdmitted{}, "",
		}, {&schemas.Dead{}, ""}, {&schemas.Replayed{}, ""},
	}
	for _, test := range tests {
		table, row, ok := schemas.RowOf(test.event)
		if table != test.table || ok != (test.table != "") {
			t.Errorf("RowOf(%T) = %q, %v, want %q", test.event, table, ok, test.table)
			continue
		}
		if ok && reflect.TypeOf(row) != reflect.PointerTo(rows[table]) {
			t.Errorf("RowOf(%T) gives a %T, want a *%s", test.event, row, rows[table])
		}
	}
}
