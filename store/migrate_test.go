package store_test

import (
	"errors"
	"sync"
	"testing"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// relations returns the tables and views of a database.
func relations(t testing.TB, d *store.Database) map[string]string {
	t.Helper()
	var rows []struct {
		Name   string `ch:"name"`
		Create string `ch:"create_table_query"`
	}
	must(
		t,
		d.Query(
			t.Context(),
			&rows,
			"SELECT name, replace(create_table_query, concat(database, '.'), '') AS create_table_query FROM "+
				"system.tables WHERE database = currentDatabase()",
		),
	)
	all := make(map[string]string)
	for _, r := range rows {
		all[r.Name] = r.Create
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
		if got := selectNumber(t, d, "SELECT count() AS n FROM schema_migrations"); got != uint64(
			len(migrations),
		) {
			t.Errorf("schema_migrations has %d rows, want %d", got, len(migrations))
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
		d := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
		for _, statement := range statements[:done] {
			must(t, d.Exec(t.Context(), statement))
		}
		must(t, d.Migrate(t.Context()))
		if diff := cmp.Diff(want, relations(t, d)); diff != "" {
			t.Errorf("database after a crash after statement %d (-want +got):\n%s", done, diff)
		}
	}
}

func TestMigrate_RunsConcurrently(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, storetest.Protocols(t)[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := storetest.Open(t, address).Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(relations(t, storetest.New(t)), relations(t, storetest.Open(t, address))); diff != "" {
		t.Errorf("database after four concurrent migrations (-want +got):\n%s", diff)
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
