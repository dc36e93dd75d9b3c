package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
)

// A later version adds a column to a table with rows on each server. The readers see it.
func TestCluster_UpgradesItsDatabases(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 1, 1)
	testUpgrade(t, servers, bustest.New(t))
}

// The same for replicated tables. Then a server has lost its disk, and gets the tables of the other
// replica, which have the column.
func TestReplicas_UpgradeTheirDatabases(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	testUpgrade(t, servers, b)
	want := clusterRelations(t, servers)
	must(t, storetest.Open(t, servers.URL(1, "default")).Exec(t.Context(),
		"DROP DATABASE courier_local SYNC"))
	must(t, openCluster(t, b, servers).MigrateWith(t.Context(), laterMigrations()))
	if diff := cmp.Diff(want, clusterRelations(t, servers)); diff != "" {
		t.Errorf("databases after the loss of a disk (-want +got):\n%s", diff)
	}
}

// testUpgrade adds a column to a cluster's tables, which a store has filled.
func testUpgrade(t *testing.T, servers *cluster.Servers, b *bus.Bus) {
	t.Helper()
	c := openCluster(t, b, servers)
	stop := run(t, c)
	last := publishJobs(t, b, "")
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, last)
	stop()
	epochs := selectNumber(t, readers, "SELECT count() AS n FROM epochs")

	must(t, openCluster(t, b, servers).MigrateWith(t.Context(), laterMigrations()))
	const noted = "SELECT count() AS n FROM epochs WHERE note = 'none'"
	if n := selectNumber(t, readers, noted); n != epochs || n == 0 {
		t.Errorf("%d of %d epochs have the default of the new column", n, epochs)
	}
	if n := selectNumber(t, readers, "SELECT count() AS n FROM job_note"); n != 0 {
		t.Errorf("the new table has %d rows", n)
	}
}

// A replica without tables joins one that was interrupted in its first migration.
func TestReplicas_JoinATornReplica(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	want := clusterRelations(t, servers)
	must(t, storetest.Open(t, servers.URL(0, "courier_local")).Exec(t.Context(),
		"TRUNCATE TABLE schema_migrations"))
	must(t, storetest.Open(t, servers.URL(1, "default")).Exec(t.Context(),
		"DROP DATABASE courier_local SYNC"))
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	if diff := cmp.Diff(want, clusterRelations(t, servers)); diff != "" {
		t.Errorf("databases (-want +got):\n%s", diff)
	}
}

var columnComment = regexp.MustCompile(` COMMENT '(?:[^'\\]|\\.)*'`)

// clusterRelations returns the relations of the local and the readers' database of each server.
// Those of replicated tables have no comments: if a migration adds a column and comments on it, a
// replica sometimes loses the comment (ClickHouse 26.7).
func clusterRelations(t *testing.T, servers *cluster.Servers) map[string]map[string]string {
	t.Helper()
	all := make(map[string]map[string]string)
	for i := range servers.Size() {
		for _, database := range []string{"courier_local", "courier"} {
			d := storetest.Open(t, servers.URL(i, database))
			syncReplicas(t, d)
			found := relations(t, d)
			for name, definition := range found {
				if strings.Contains(definition, "ENGINE = Replicated") {
					found[name] = columnComment.ReplaceAllString(definition, "")
				}
			}
			all[fmt.Sprintf("%s on server %d", database, i)] = found
		}
	}
	return all
}

// syncReplicas waits until the replicated tables have the changes that other replicas have made.
func syncReplicas(t *testing.T, d *store.Database) {
	t.Helper()
	const tables = "SELECT table FROM system.replicas WHERE database = currentDatabase()"
	for _, name := range values[string](t, d, tables) {
		must(t, d.Exec(t.Context(), "SYSTEM SYNC REPLICA "+name))
	}
}

func dropDatabases(t *testing.T, servers *cluster.Servers, names ...string) {
	t.Helper()
	for i := range servers.Size() {
		d := storetest.Open(t, servers.URL(i, "default"))
		for _, name := range names {
			must(t, d.Exec(t.Context(), "DROP DATABASE IF EXISTS "+name+" SYNC"))
		}
	}
}
