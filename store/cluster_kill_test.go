package store_test

import (
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
