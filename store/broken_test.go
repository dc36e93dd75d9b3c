package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
)

// breakParts empties the marks of a table's parts behind the engine's back, as a
// merge leaves them that met a full disk.
func breakParts(t *testing.T, d *store.Database, table string) {
	t.Helper()
	must(t, d.Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"))
	var parts []struct {
		Path string `ch:"path"`
	}
	must(t, d.Query(t.Context(), &parts, "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = ? AND active", table))
	broken := 0
	for _, p := range parts {
		marks, err := filepath.Glob(filepath.Join(p.Path, "*mrk*"))
		must(t, err)
		for _, m := range marks {
			must(t, os.Truncate(m, 0))
			broken++
		}
	}
	if broken == 0 {
		t.Fatalf("%s has no marks in %v", table, parts)
	}
}

// TestStore_HealsPartsThatCannotBeRead: the store, and a repair, load the table
// again and bring what is missing from the log, whatever old parts still have.
func TestStore_HealsPartsThatCannotBeRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	if os.Getenv(storetest.ServerVariable) != "" {
		t.Skip("the files of a server elsewhere cannot be broken")
	}
	d, b := storetest.New(t), bustest.New(t)
	finish := run(t, newStore(t, b, d))
	stop := publishAll(t, b)
	reach(t, d, map[string]uint64{schemas.StreamNode: 100, schemas.StreamJob: 50})
	for _, table := range []string{"node_sample", "node_minute", "job_run"} {
		breakParts(t, d, table)
	}
	reach(t, d, map[string]uint64{schemas.StreamNode: 400, schemas.StreamJob: 200})
	last := stop()
	reach(t, d, last)
	finish()
	breakParts(t, d, "job_epoch")
	verify(t, b, d, store.VerifyOptions{Repair: true}, 0) // may find nothing: all rows may be in older parts still
	if n := ask(t, d, "SELECT uniqExact(table) AS n FROM system.detached_parts WHERE database = currentDatabase() AND startsWith(reason, 'broken')"); n != 4 {
		t.Errorf("parts of %d tables were set aside, want 4", n)
	}
	clean(t, b, d, "after the repair")
	compare(t, b, d)
}
