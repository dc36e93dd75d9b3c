package store_test

import (
	"os"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
)

// A process is killed while it creates the databases of all servers. The next one continues, and the
// tables are complete.
func TestCluster_SurvivesKillsDuringMigrations(t *testing.T) {
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
	dropDatabases(t, servers, "courier", "courier_v1")
	must(t, openCluster(t, b, servers).Migrate(t.Context()))
	if diff := cmp.Diff(clusterRelations(t, servers), want); diff != "" {
		t.Errorf("databases (-new +migrated):\n%s", diff)
	}
}

// A reshard is killed before, during and after the copy of the tables, and after the record of the
// new map. Another run, or a store, completes it. Without COURIER_LONG, one kill must do.
func TestReshard_SurvivesKills(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	stop := run(t, openCluster(t, b, servers))
	awaitSequences(t, storetest.Open(t, servers.URL(0, "courier")), publishJobs(t, b, "first-"))
	stop()

	publishJobs(t, b, "unwritten-")
	servers.Reconfigure(t, 1, 2, 1)
	kills := []struct {
		message string
		times   int
	}{
		{"statement applied", 50},
		{"table copied", 1},
		{"table copied", 9},
		{"shard map changed", 1},
	}
	if os.Getenv("COURIER_LONG") == "" {
		kills = kills[2:3]
	}
	for _, kill := range kills {
		runVictim(t, killOrder{
			NATS:       server.URL(),
			ClickHouse: servers.URL(0, "courier"),
			Cluster:    cluster.Name,
			Action:     "reshard",
			Message:    kill.message,
			Times:      kill.times,
		})
	}
	if err := reshard(t, b, servers); err != nil {
		t.Errorf("reshard after the new map was recorded: %v", err)
	}
	c := openCluster(t, b, servers)
	stop = run(t, c)
	last := publishJobs(t, b, "late-")
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	verifyCluster(t, b, c)
}
