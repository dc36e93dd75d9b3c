package store_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// relations returns the definitions of the tables and views of a database, without the granularity:
// its place among the settings depends on when they were added.
func relations(t testing.TB, d *store.Database) map[string]string {
	t.Helper()
	var rows []struct {
		Name   string `ch:"name"`
		Create string `ch:"create"`
	}
	must(t, d.Query(t.Context(), &rows, "SELECT name, "+
		"replace(create_table_query, concat(database, '.'), '') AS create "+
		"FROM system.tables WHERE database = currentDatabase()"))
	all := make(map[string]string)
	for _, r := range rows {
		all[r.Name] = granularity.ReplaceAllString(r.Create, "")
	}
	return all
}

func TestMigrate_IsIdempotent(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, func(t *testing.T, d *store.Database) {
		migrations, err := schemas.Migrations()
		must(t, err)
		want := relations(t, d)
		for range 2 {
			must(t, d.Migrate(t.Context()))
		}
		recorded := selectNumber(t, d, "SELECT countIf(number > 0) AS n FROM schema_migrations")
		if recorded != uint64(len(migrations)) {
			t.Errorf("%d migrations are recorded, want %d", recorded, len(migrations))
		}
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("a repeated migration changed the database (-want +got):\n%s", diff)
		}
	})
}

// A process may crash after it has applied statements of a migration and before it records the
// migration.
func TestMigrate_ContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	migrations, err := schemas.Migrations()
	must(t, err)
	var statements []string
	for _, m := range migrations {
		statements = append(statements, m.Statements...)
	}
	for _, done := range []int{1, len(statements) / 2, len(statements)} {
		d := execAll(t, statements[:done])
		must(t, d.Migrate(t.Context()))
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("database after a crash after statement %d (-want +got):\n%s", done, diff)
		}
	}
}

// A process may crash while it creates a new database. The next process continues in the same way,
// and records all migrations at once.
func TestMigrate_ContinuesToCreateADatabase(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	statements, err := store.Schema("")
	must(t, err)
	last := len(statements)
	for _, done := range []int{0, 1, 2, 3, last / 2, last - 1, last} {
		d := execAll(t, statements[:done])
		must(t, d.Migrate(t.Context()))
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("database after a crash after statement %d (-want +got):\n%s", done, diff)
		}
		if times := recordTimes(t, d); times != 1 {
			t.Errorf("after a crash after statement %d: migrations are recorded at %d times, want 1",
				done, times)
		}
	}
}

// A process of another version may crash while it creates the same new database, whose tables may
// lack columns of this version. All migrations are applied, which add them.
func TestMigrate_UpgradesATornDatabaseOfAnotherVersion(t *testing.T) {
	t.Parallel()
	const otherMark = "INSERT INTO schema_migrations SELECT 0, '0026_other.sql', now64(9)"
	statements, err := store.Schema("")
	must(t, err)
	d := execAll(t, slices.Concat(
		statements[:2], // the table of migrations and the mark of this version
		[]string{otherMark},
		statements[2:len(statements)/2],
		[]string{"ALTER TABLE job_moved DROP COLUMN rejected_reasons"},
	))
	must(t, d.Migrate(t.Context()))
	if diff := cmp.Diff(relations(t, storetest.New(t)), relations(t, d)); diff != "" {
		t.Errorf("database (-want +got):\n%s", diff)
	}
}

// execAll executes statements in an empty database.
func execAll(t *testing.T, statements []string) *store.Database {
	t.Helper()
	d := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
	for _, s := range statements {
		must(t, d.Exec(t.Context(), s))
	}
	return d
}

// recordTimes returns the number of times at which migrations were recorded.
func recordTimes(t *testing.T, d *store.Database) uint64 {
	t.Helper()
	return selectNumber(t, d,
		"SELECT uniqExactIf(applied_at, number > 0) AS n FROM schema_migrations")
}

// A database of an older version gets the tables and views of a new one. The statements that
// "courier store schema" prints do not hide that it lacks migrations.
func TestMigrate_UpgradesADatabase(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	printed, err := store.Schema("")
	must(t, err)
	for _, old := range []struct {
		migrations int
		executed   []string
	}{{16, nil}, {20, printed}} {
		d := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
		must(t, d.MigrateTo(t.Context(), old.migrations))
		for _, s := range old.executed {
			must(t, d.Exec(t.Context(), s))
		}
		must(t, d.Migrate(t.Context()))
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("database after migration %d (-want +got):\n%s", old.migrations, diff)
		}
	}
}

// Several processes start at the same time, with a new database or one of an older version.
func TestMigrate_RunsConcurrently(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	for _, migrations := range []int{0, 24} {
		address := storetest.Address(t, storetest.Protocols(t)[0])
		if migrations > 0 {
			must(t, storetest.Open(t, address).MigrateTo(t.Context(), migrations))
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := storetest.Open(t, address).Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if diff := cmp.Diff(want, relations(t, storetest.Open(t, address))); diff != "" {
			t.Errorf("database with %d migrations after four concurrent upgrades (-want +got):\n%s",
				migrations, diff)
		}
	}
}

func TestMigrate_RejectsANewerDatabase(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	must(t,
		d.Exec(t.Context(),
			"INSERT INTO schema_migrations SELECT 999, '0999_future.sql', now64(9)"))
	if err := d.Migrate(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Migrate of a newer database = %v, want ErrNewer", err)
	}
	if err := newStore(t, bustest.New(t), d).Run(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Run over a newer database = %v, want ErrNewer", err)
	}
}

func TestMigrate_ColumnsMatchTheRowStructs(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, table := range schemas.Tables() {
		var rows []struct {
			Name string `ch:"name"`
		}
		must(
			t,
			d.Query(
				t.Context(),
				&rows,
				"SELECT name FROM system.columns WHERE database = currentDatabase() AND table = ? ORDER BY position",
				table.Name,
			),
		)
		var got []string
		for _, r := range rows {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(store.ColumnNames(table.Row), got); diff != "" {
			t.Errorf("columns of %s (-struct +table):\n%s", table.Name, diff)
		}
	}
}
