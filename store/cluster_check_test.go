package store_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// publishJobs publishes jobs and samples, whose keys belong to several shards.
func publishJobs(t testing.TB, b *bus.Bus, prefix string) map[string]uint64 {
	t.Helper()
	s := newTestLog()
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		s.job(prefix+name, time.Minute, schemas.EventFinished)
		for n := range uint64(40) {
			s.sample(prefix+name, n)
		}
	}
	return publish(t, b, s.events)
}

// wantTablesDiffer fails unless an error matches ErrTablesDiffer and cannot be cured by a retry.
func wantTablesDiffer(t *testing.T, action string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrTablesDiffer) || !errors.Is(err, store.ErrRefused) {
		t.Errorf("%s: error %v, want ErrTablesDiffer and ErrRefused", action, err)
	}
}

// A store of a cluster refuses the database of a single server, and leaves no trace. With another
// database it fills the shards from the log, while the store of the single server runs.
func TestCluster_RefusesTheTablesOfASingleServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	single := storetest.Open(t, servers.URL(1, "courier"))
	last := publishJobs(t, b, "single-")
	stopSingle := run(t, newStore(t, b, single))
	awaitSequences(t, single, last)

	_, err := tryCluster(t, b, servers)
	wantTablesDiffer(t, "open the cluster", err)
	if maps, _, err := b.ShardMaps(t.Context()); len(maps) > 0 || err != nil {
		t.Errorf("a refused start recorded the shard maps %+v, error %v", maps, err)
	}

	c, err := tryClusterAt(t, b, servers.URL(1, "courier_all"))
	must(t, err)
	defer c.Close()
	stop := run(t, c)
	last = publishJobs(t, b, "cluster-")
	awaitSequences(t, single, last)
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier_all"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	stopSingle()
	verifyCluster(t, b, c)
	compare(t, b, single)
}

// The tables of a single server appear although the shard map is recorded.
func TestCluster_RefusesToMigrateTheTablesOfASingleServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, storetest.Open(t, servers.URL(1, "courier")).Migrate(t.Context()))
	wantTablesDiffer(t, "migrate", c.Migrate(t.Context()))
	wantTablesDiffer(t, "run", c.Run(t.Context()))
}

// Nothing that works on a single server's tables writes to those of a cluster, neither with the log
// of the cluster nor with another log.
func TestStore_RefusesTheTablesOfACluster(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	last := publishJobs(t, b, "")
	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, last)
	stop()

	log := slog.New(slog.DiscardHandler)
	local := storetest.Open(t, servers.URL(0, "courier_local"))
	for _, c := range []struct {
		name     string
		bus      *bus.Bus
		database *store.Database
	}{
		{"distributed tables and another log", bustest.New(t), readers},
		{"distributed tables", b, readers},
		{"the rows of a shard", b, local},
	} {
		wantTablesDiffer(t, c.name+": run", newStore(t, c.bus, c.database).Run(t.Context()))
		_, err := store.NewVerifier(c.bus, c.database, log, store.VerifyOptions{}).Verify(t.Context())
		wantTablesDiffer(t, c.name+": verify", err)
		err = store.Rebuild(t.Context(), c.bus, c.database, log, store.RebuildOptions{})
		wantTablesDiffer(t, c.name+": rebuild", err)
	}
	compare(t, b, readers)
	verifyCluster(t, b, c)
}
