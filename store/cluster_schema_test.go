package store_test

import (
	"strings"
	"testing"

	"courier/store"
	"courier/store/storetest"
)

// The schema of a cluster is derived from that of a single server.
func TestSchema_OfACluster(t *testing.T) {
	t.Parallel()
	statements, err := store.Schema("main")
	must(t, err)
	text := strings.Join(statements, ";\n")
	local, readers, _ := strings.Cut(text, "USE courier;\n")
	for _, c := range []struct {
		where, text, want string
		count             int
	}{
		{"shards", local, "ENGINE = Replicated", len(store.TableNames())},
		{"shards", local, "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'", len(store.TableNames())},
		{"shards", local, "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', " +
			"'{replica}', sequence)", 1},
		{"shards", local, " non_replicated_deduplication_window", 0},
		{"shards", local, "MATERIALIZED VIEW", 3},
		{"readers", readers, "ENGINE = Distributed(main, courier_local, ", len(store.TableNames())},
		{"readers", readers, "Distributed(main, courier_local, job_epoch, cityHash64(job_id))", 1},
		{"readers", readers, "Distributed(main, courier_local, node_hour, cityHash64(node))", 1},
		{"readers", readers, "CREATE OR REPLACE VIEW log_position AS", 1},
		{"readers", readers, "MATERIALIZED VIEW", 0},
		{"readers", readers, "MergeTree", 0},
		{"readers", readers, "CREATE VIEW IF NOT EXISTS jobs ", 1},
	} {
		if got := strings.Count(c.text, c.want); got != c.count {
			t.Errorf("the statements for %s have %q %d times, want %d", c.where, c.want, got, c.count)
		}
	}
	if _, err := store.Schema("no; such"); err == nil {
		t.Error("Schema accepts an invalid cluster name, want an error")
	}

	// The engine of a test has no Keeper for replicated tables, but parses each statement.
	d := storetest.New(t)
	for _, s := range statements {
		if tree, err := store.Values[string](t.Context(), d, "EXPLAIN AST "+s); err != nil || len(tree) == 0 {
			t.Errorf("%v:\n%s", err, s)
		}
	}
}
