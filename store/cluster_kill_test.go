package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
)

// A process is killed while it creates the databases of all servers. The next one continues, and the
// tables are complete.
func TestCluster_SurvivesKillsDuringMigrations(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	for _, kill := range []struct {
		message string
		times   int
	}{
		{"statement applied", 1},
		{"statement applied", 40},
		{"database migrated", 1},  // the local database of the first server
		{"statement applied", 60}, // the readers' databases
		{"database migrated", 1},  // that of the first server
	} {
		runVictim(t, killOrder{
			NATS:       server.URL(),
			ClickHouse: servers.URL(0, "courier"),
			Cluster:    cluster.Name,
			Action:     "migrate",
			Message:    kill.message,
			Times:      kill.times,
		})
	}
	compareMigrated(t, b, servers)
}

// compareMigrated runs a store of a cluster. It compares the rows of all servers with the log, and
// the definitions of their tables with those of new databases.
func compareMigrated(t *testing.T, b *bus.Bus, servers *cluster.Servers) {
	t.Helper()
	c := openCluster(t, b, servers)
	stop := run(t, c)
	last := publishJobs(t, b, "")
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	verifyCluster(t, b, c)
	want := clusterRelations(t, servers)
	dropDatabases(t, servers, "courier", "courier_local")
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	if diff := cmp.Diff(clusterRelations(t, servers), want); diff != "" {
		t.Errorf("databases (-new +migrated):\n%s", diff)
	}
}

// again are the settings to insert rows a second time.
const again = " SETTINGS insert_deduplicate = 0"

var clusterDamages = map[string]string{
	"rows are lost":    "DELETE FROM node_sample WHERE cityHash64(event_id, %d) %% 7 = 0",
	"epochs are lost":  "DELETE FROM job_epoch WHERE cityHash64(event_id, %d) %% 2 = 0",
	"a table is empty": "TRUNCATE TABLE job_started /* %d */",
	"rows are duplicated": "INSERT INTO node_sample SELECT * FROM node_sample " +
		"WHERE cityHash64(event_id, %d) %% 5 = 0" + again,
	"a roll-up loses rows": "DELETE FROM node_minute WHERE cityHash64(node, %d) %% 2 = 0",
	"a roll-up counts twice": "INSERT INTO node_hour SELECT * FROM node_hour " +
		"WHERE cityHash64(node, %d) >= 0" + again,
}

// A rebuild restores the damaged tables of any shard, and those of a shard whose databases are lost.
func TestCluster_IsRebuilt(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := rebuildDamages(t, b, servers)
	lost := storetest.Open(t, servers.URL(1, "default"))
	for _, name := range []string{c.ShardMap().LocalDatabase(), "courier"} {
		must(t, lost.Exec(t.Context(), "DROP DATABASE "+name+" SYNC"))
	}
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)
	compare(t, b, storetest.Open(t, servers.URL(1, "courier")))
}

// rebuildDamages damages the tables of two shards, finds each damage, and rebuilds the tables.
func rebuildDamages(t *testing.T, b *bus.Bus, servers *cluster.Servers) *store.Cluster {
	t.Helper()
	c := openCluster(t, b, servers)
	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, publishJobs(t, b, "damaged-"))
	stop()

	random := rand.New(rand.NewPCG(22, 0))
	found := 0
	for _, name := range slices.Sorted(maps.Keys(clusterDamages)) {
		statement := fmt.Sprintf(clusterDamages[name], random.Uint32())
		must(t, c.Databases()[random.IntN(2)].Exec(t.Context(), statement))
		r, err := c.Verify(t.Context(), store.VerifyOptions{})
		must(t, err)
		if r.Different <= found {
			t.Errorf("%s: %d hours differ, and %d before", name, r.Different, found)
		}
		found = r.Different
	}
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)
	compare(t, b, readers)
	return c
}

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
	wantNumber(t, readers, 0, "SELECT count() AS n FROM job_note")
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
