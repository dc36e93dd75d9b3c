package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// breakParts empties the files of a table's parts on disk, like a merge on a full disk. It stops
// merges of the table: a merge that has already read the parts would replace them by an intact
// part.
func breakParts(t *testing.T, d *store.Database, table string) {
	t.Helper()
	must(t, d.Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"))
	must(t, d.Exec(t.Context(), "SYSTEM STOP MERGES "+table))
	await(t, "the merges of "+table+" to end", func() bool {
		const merges = "SELECT count() AS n FROM system.merges" +
			" WHERE database = currentDatabase() AND table = ?"
		return selectNumber(t, d, merges, table) == 0
	})
	if emptyParts(t, d, table) == 0 {
		t.Fatalf("%s has no parts", table)
	}
	must(t, d.Exec(t.Context(), "SYSTEM START MERGES "+table))
}

// emptyParts empties the marks and data of a table's parts and returns the number of files. Empty
// marks alone do not suffice: the marks of a part that was read are cached.
func emptyParts(t *testing.T, d *store.Database, table string) (files int) {
	t.Helper()
	for _, path := range partPaths(t, d, table) {
		for _, kind := range []string{"*mrk*", "*.bin"} {
			names, err := filepath.Glob(filepath.Join(path, kind))
			must(t, err)
			for _, name := range names {
				must(t, os.Truncate(name, 0))
				files++
			}
		}
	}
	return files
}

// The store reloads tables that it cannot read, and rebuilds those that lack rows then. A rebuild
// restores a table that nothing has reloaded.
func TestStore_RebuildsUnreadableParts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	if os.Getenv(storetest.ServerVariable) != "" {
		t.Skip("the files of a remote server cannot be damaged")
	}
	d, b := storetest.New(t), bustest.New(t)
	finish := run(t, newStore(t, b, d))
	stop := publishAll(t, b)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 100, schemas.StreamJob: 50})
	for _, table := range []string{"node_sample", "node_minute", "job_run"} {
		breakParts(t, d, table)
	}
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 400, schemas.StreamJob: 200})
	last := stop()
	awaitSequences(t, d, last)
	await(t, "the end of the rebuild", func() bool {
		r, err := store.NewVerifier(b, d, discard, store.VerifyOptions{}).Verify(t.Context())
		return err == nil && r.Different() == 0
	})
	finish()
	want := []string{"job_run", "node_minute", "node_sample"}
	if diff := cmp.Diff(want, unreadableTables(t, d)); diff != "" {
		t.Errorf("tables with unreadable parts (-want +got):\n%s", diff)
	}

	breakParts(t, d, "job_epoch")
	_, err := store.NewVerifier(b, d, discard, store.VerifyOptions{}).Verify(t.Context())
	if err == nil || !strings.Contains(err.Error(), "run courier store rebuild") {
		t.Errorf("Verify with an unreadable part = %v, want an error that names the remedy", err)
	}
	rebuild(t, b, d, schemas.StreamJob)
	clean(t, b, d, "after a rebuild")
	compare(t, b, d)
}

// unreadableTables returns the tables with parts that were set aside as unreadable.
func unreadableTables(t *testing.T, d *store.Database) []string {
	t.Helper()
	return values[string](t, d, "SELECT DISTINCT table FROM system.detached_parts"+
		" WHERE database = currentDatabase() AND startsWith(reason, 'broken') ORDER BY table")
}

// partPaths returns the directories of a table's active parts.
func partPaths(t *testing.T, d *store.Database, table string) []string {
	t.Helper()
	return values[string](t, d, "SELECT path FROM system.parts"+
		" WHERE database = currentDatabase() AND table = ? AND active", table)
}
