package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// The schema of a cluster is derived from that of a single server. The golden file shows the effect
// of a new migration.
func TestSchema_OfAClusterMatchesTheGoldenFile(t *testing.T) {
	statements, err := store.Schema("main")
	must(t, err)
	got := strings.Join(statements, ";\n\n") + ";\n"
	path := filepath.Join("testdata", "cluster.sql")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("schema of a cluster; -update writes the file (-want +got):\n%s", diff)
	}
	if _, err := store.Schema("no; such"); err == nil {
		t.Error("Schema accepts an invalid cluster name, want an error")
	}
}

// The engine of a test has no Keeper for replicated tables, but parses each statement. The statements for one
// server create the same database as Migrate.
func TestSchema_IsValid(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	cluster, err := store.Schema("main")
	must(t, err)
	for _, s := range cluster {
		var rows []struct {
			Text string `ch:"explain"`
		}
		if err := d.Query(t.Context(), &rows, "EXPLAIN AST "+s); err != nil || len(rows) == 0 {
			t.Errorf("%v:\n%s", err, s)
		}
	}
	single, err := store.Schema("")
	must(t, err)
	other := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
	for _, s := range single {
		must(t, other.Exec(t.Context(), s))
	}
	if diff := cmp.Diff(relations(t, d), relations(t, other)); diff != "" {
		t.Errorf("database (-Migrate +Schema):\n%s", diff)
	}
	must(t, other.Migrate(t.Context()))
}
