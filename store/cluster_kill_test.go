package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
		if r.Different() <= found {
			t.Errorf("%s: %d hours differ, and %d before", name, r.Different(), found)
		}
		found = r.Different()
	}
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)
	compare(t, b, readers)
	return c
}
