package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// relations returns the definitions of the tables and views of a database.
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
		all[r.Name] = r.Create
	}
	return all
}

// laterMigrations are the migrations of a later version of this program: one adds a column to a
// table and to the view of it, and one adds a table.
func laterMigrations() []schemas.Migration {
	all := schemas.Migrations()
	next := len(all) + 1
	return append(all, schemas.Migration{
		Number: next, Name: "column.sql", Statements: []string{
			"ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS note String DEFAULT 'none' AFTER loss",
			"CREATE OR REPLACE VIEW epochs AS SELECT job_id, epoch, note FROM job_epoch",
		},
	}, schemas.Migration{
		Number: next + 1, Name: "table.sql", Statements: []string{
			"CREATE TABLE IF NOT EXISTS job_note (\n    job_id String,\n    note String\n) " +
				"ENGINE = MergeTree\nORDER BY job_id",
		},
	})
}

func TestMigrate_IsIdempotent(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	want := relations(t, d)
	for range 2 {
		must(t, d.Migrate(t.Context()))
	}
	recorded := selectNumber(t, d, "SELECT count() AS n FROM schema_migrations")
	if recorded != uint64(len(schemas.Migrations())) {
		t.Errorf("%d migrations are recorded, want each once", recorded)
	}
	if diff := cmp.Diff(want, relations(t, d)); diff != "" {
		t.Errorf("a repeated migration changed the database (-want +got):\n%s", diff)
	}
}

// A process may crash after it has applied statements of a migration and before it records the
// migration. The statements are those that "courier store schema" prints.
func TestMigrate_ContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	statements, err := store.Schema("")
	must(t, err)
	for _, done := range []int{1, len(statements) / 2, len(statements)} {
		d := storetest.Open(t, storetest.Empty(t))
		for _, s := range statements[:done] {
			must(t, d.Exec(t.Context(), s))
		}
		must(t, d.Migrate(t.Context()))
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("database after a crash after statement %d (-want +got):\n%s", done, diff)
		}
	}
}

// A later version adds a column to a table with rows, while several of its processes start at the
// same time. The rows stay, and have the default of the column.
func TestMigrate_AddsAColumnToATableWithRows(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t)
	d := storetest.Open(t, address)
	must(t, d.Migrate(t.Context()))
	s := newTestLog()
	s.job("alpha", time.Minute, schemas.EventFinished)
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	epochs := selectNumber(t, d, "SELECT count() AS n FROM epochs")
	if epochs == 0 {
		t.Fatal("the table has no rows")
	}

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			err := storetest.Open(t, address).MigrateWith(t.Context(), laterMigrations())
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	const noted = "SELECT count() AS n FROM epochs WHERE note = 'none'"
	wantNumber(t, d, epochs, noted)
	wantNumber(t, d, 0, "SELECT count() AS n FROM job_note")
	const recorded = "SELECT uniqExact(number) AS n FROM schema_migrations"
	wantNumber(t, d, uint64(len(laterMigrations())), recorded)
}

// Several processes create a new database at the same time.
func TestMigrate_RunsConcurrently(t *testing.T) {
	t.Parallel()
	want := relations(t, storetest.New(t))
	address := storetest.Address(t)
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
		t.Errorf("database that four processes created (-want +got):\n%s", diff)
	}
}

func TestMigrate_RejectsANewerDatabase(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	must(t, d.Exec(t.Context(), "INSERT INTO schema_migrations SELECT 999, '0999_future.sql', now64(9)"))
	if err := d.Migrate(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Migrate of a newer database = %v, want ErrNewer", err)
	}
	if err := newStore(t, bustest.New(t), d).Run(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Run over a newer database = %v, want ErrNewer", err)
	}
}

// A table that lacks a column, as an earlier state of this program has created it, is refused at the start.
// Otherwise each insert would fail, and be retried for ever.
func TestMigrate_RefusesATableWithoutAColumn(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	must(t, d.Exec(t.Context(), "ALTER TABLE job_moved DROP COLUMN free_cpus"))
	err := d.Migrate(t.Context())
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "job_moved") ||
		!strings.Contains(err.Error(), "lacks the column free_cpus") {
		t.Errorf("Migrate without a column = %v, want ErrRefused that names the table and the column", err)
	}
	err = d.Exec(t.Context(), "INSERT INTO job_moved (free_cpus) VALUES (1)")
	if !errors.Is(err, store.ErrRefused) {
		t.Errorf("insert without the column = %v, want ErrRefused", err)
	}
}

func TestMigrate_ColumnsMatchTheRowStructs(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, table := range schemas.Tables() {
		got := values[string](t, d, "SELECT name FROM system.columns "+
			"WHERE database = currentDatabase() AND table = ? ORDER BY position", table.Name)
		if diff := cmp.Diff(store.ColumnNames(table.Row), got); diff != "" {
			t.Errorf("columns of %s (-struct +table):\n%s", table.Name, diff)
		}
	}
}
