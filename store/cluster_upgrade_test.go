package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"courier/bus/bustest"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
)

// upgrade is the state of the databases before an upgrade.
type upgrade struct {
	migrations int    // that they have
	lost       string // name of a database that is new on every server; "": none
}

// The databases of an older version get the tables and views of new ones, although one of the two
// databases of each server is new.
func TestCluster_UpgradesItsDatabases(t *testing.T) {
	t.Parallel()
	testUpgrades(t, cluster.Start(t, 1), upgrade{12, "courier"}, upgrade{11, "courier_v1"})
}

// The same for replicated tables.
func TestReplicas_UpgradeTheirDatabases(t *testing.T) {
	t.Parallel()
	testUpgrades(t, cluster.StartReplicated(t, 2, 1), upgrade{16, ""})
}

// testUpgrades compares upgraded databases with new ones.
func testUpgrades(t *testing.T, servers *cluster.Servers, upgrades ...upgrade) {
	t.Helper()
	b := bustest.New(t)
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	want := clusterRelations(t, servers)
	for _, u := range upgrades {
		dropDatabases(t, servers, "courier", "courier_v1")
		must(t, openCluster(t, b, servers).MigrateTo(t.Context(), u.migrations))
		if u.lost != "" {
			dropDatabases(t, servers, u.lost)
		}
		must(t, openCluster(t, b, servers).Migrate(t.Context()))
		if diff := cmp.Diff(want, clusterRelations(t, servers)); diff != "" {
			t.Errorf("databases after an upgrade of %+v (-want +got):\n%s", u, diff)
		}
	}
}

// A replica without tables joins one that was interrupted in its first migration.
func TestReplicas_JoinATornReplica(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, c.Migrate(t.Context()))
	want := clusterRelations(t, servers)
	dropDatabases(t, servers, "courier", "courier_v1")

	c = openCluster(t, b, servers)
	must(t, c.MigrateTo(t.Context(), 1))
	must(t, storetest.Open(t, servers.URL(0, "courier_v1")).Exec(t.Context(),
		"TRUNCATE TABLE schema_migrations"))
	must(t, storetest.Open(t, servers.URL(1, "default")).Exec(t.Context(),
		"DROP DATABASE courier_v1 SYNC"))
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	if diff := cmp.Diff(want, clusterRelations(t, servers)); diff != "" {
		t.Errorf("databases (-want +got):\n%s", diff)
	}
}

// columnComment is the comment of a column.
var columnComment = regexp.MustCompile(` COMMENT '(?:[^'\\]|\\.)*'`)

// clusterRelations returns the relations of the local and the readers' database of each server.
// Those of replicated tables have no comments: if a migration adds a column and comments on it, a
// replica sometimes loses the comment (ClickHouse 26.7).
func clusterRelations(t *testing.T, servers *cluster.Servers) map[string]map[string]string {
	t.Helper()
	all := make(map[string]map[string]string)
	for i := range servers.Size() {
		for _, database := range []string{"courier_v1", "courier"} {
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
	var tables []struct {
		Name string `ch:"name"`
	}
	must(t, d.Query(t.Context(), &tables, "SELECT table AS name FROM system.replicas "+
		"WHERE database = currentDatabase()"))
	for _, table := range tables {
		must(t, d.Exec(t.Context(), "SYSTEM SYNC REPLICA "+table.Name))
	}
}

// dropDatabases drops databases on all servers.
func dropDatabases(t *testing.T, servers *cluster.Servers, names ...string) {
	t.Helper()
	for i := range servers.Size() {
		d := storetest.Open(t, servers.URL(i, "default"))
		for _, name := range names {
			must(t, d.Exec(t.Context(), "DROP DATABASE IF EXISTS "+name+" SYNC"))
		}
	}
}
