package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// createFile has the statements for a new database.
var createFile = filepath.Join("..", "schemas", "clickhouse.sql")

const createHeader = `-- The tables and views of a new database, as the migrations in clickhouse/ leave them.
-- "go test ./store -run Schema_OfANewDatabase -update" writes this file. Do not edit it.
`

// A new database has the tables and views that all migrations leave, each applied by a version that
// had no later one.
func TestSchema_OfANewDatabaseIsThatOfAllMigrations(t *testing.T) {
	t.Parallel()
	migrations, err := schemas.Migrations()
	must(t, err)
	migrated := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
	for n := range migrations {
		must(t, migrated.MigrateTo(t.Context(), n+1))
	}
	got := createHeader + "\n" + strings.Join(createStatements(t, migrated), ";\n\n") + ";\n"
	if *update {
		must(t, os.WriteFile(createFile, []byte(got), 0o644))
		return // this program has the statements of the previous file
	}
	want, err := os.ReadFile(createFile)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; -update writes the file (-want +got):\n%s", createFile, diff)
	}
	if diff := cmp.Diff(relations(t, migrated), relations(t, storetest.New(t))); diff != "" {
		t.Errorf("new database (-migrated +new):\n%s", diff)
	}
}

var (
	createName  = regexp.MustCompile(`^CREATE (TABLE|VIEW|MATERIALIZED VIEW) (\w+)`)
	readName    = regexp.MustCompile(`\b(?:FROM|JOIN)\s+(\w+)`)
	quotedName  = regexp.MustCompile("(?m)^    `(\\w+)` ")
	granularity = regexp.MustCompile(`(,|\s+SETTINGS) index_granularity = \d+\b`)
)

// createStatements returns the statements that create the tables and views of a database: the
// tables, the materialized views, and the views, each after those that it reads. The form is that
// of the migrations, and the granularity is left to the server.
func createStatements(t *testing.T, d *store.Database) (all []string) {
	t.Helper()
	type relation struct {
		Name   string `ch:"name"`
		Create string `ch:"create"`
	}
	var missing []relation
	must(t, d.Query(t.Context(), &missing, "SELECT name, replace(formatQuery(create_table_query), "+
		"concat(database, '.'), '') AS create FROM system.tables "+
		"WHERE database = currentDatabase() AND name != 'schema_migrations' "+
		"ORDER BY engine = 'View', engine = 'MaterializedView', name"))
	isMissing := func(name string) bool {
		return slices.ContainsFunc(missing, func(r relation) bool { return r.Name == name })
	}
	for len(missing) > 0 {
		next := slices.IndexFunc(missing, func(r relation) bool {
			return !slices.ContainsFunc(readName.FindAllStringSubmatch(r.Create, -1),
				func(read []string) bool { return read[1] != r.Name && isMissing(read[1]) })
		})
		if next < 0 {
			t.Fatalf("views read each other: %v", missing)
		}
		all = append(all, createStatement(missing[next].Create))
		missing = slices.Delete(missing, next, next+1)
	}
	return all
}

// createStatement returns a formatted statement in the form of the migrations.
func createStatement(formatted string) string {
	s := createName.ReplaceAllString(formatted, "CREATE $1 IF NOT EXISTS $2")
	s = quotedName.ReplaceAllString(s, "    $1 ")
	s = strings.Replace(s, "\n(\n", " (\n", 1)
	s = strings.Replace(s, "\n)\n", "\n) ", 1)
	return granularity.ReplaceAllString(s, "")
}
