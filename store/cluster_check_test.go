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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// A store of a cluster refuses the database of a single server, and leaves no trace. After the
// database was renamed, the store fills the shards from the log. The way back works, too.
func TestCluster_RefusesTheTablesOfASingleServer(t *testing.T) {
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	single := storetest.Open(t, servers.URL(1, "courier"))
	last := publishJobs(t, b, "single-")
	stop := run(t, newStore(t, b, single))
	awaitSequences(t, single, last)
	stop()

	_, err := tryCluster(t, b, servers)
	wantTablesDiffer(t, "open the cluster", err)
	if m, _, err := b.ShardMap(t.Context()); m != nil || err != nil {
		t.Errorf("a refused start recorded the shard map %+v, error %v", m, err)
	}
	must(t, single.Migrate(t.Context()))

	old := storetest.Open(t, servers.URL(1, "default"))
	must(t, old.Exec(t.Context(), "RENAME DATABASE courier TO courier_single"))
	c := openCluster(t, b, servers)
	stop = run(t, c)
	last = publishJobs(t, b, "cluster-")
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	verifyCluster(t, b, c)
	const kept = "SELECT count() AS n FROM courier_single.node_sample"
	if n := selectNumber(t, old, kept); n != 6*40 {
		t.Errorf("the renamed database has %d samples, want %d", n, 6*40)
	}
	returnToSingleServer(t, server, servers, last)
}

// returnToSingleServer drops the tables of a cluster, and restores those of the single server 1,
// whose store continues where it stopped.
func returnToSingleServer(
	t *testing.T, server *bustest.Server, servers *cluster.Servers, last map[string]uint64,
) {
	t.Helper()
	for i := range servers.Size() {
		d := storetest.Open(t, servers.URL(i, "default"))
		must(t, d.Exec(t.Context(), "DROP DATABASE courier SYNC"))
		must(t, d.Exec(t.Context(), "DROP DATABASE courier_v1 SYNC"))
	}
	old := storetest.Open(t, servers.URL(1, "default"))
	must(t, old.Exec(t.Context(), "RENAME DATABASE courier_single TO courier"))
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	intents, err := js.KeyValue(t.Context(), schemas.BucketIntents)
	must(t, err)
	must(t, intents.Delete(t.Context(), schemas.KeyShardMap))

	b, single := server.Connect(t), storetest.Open(t, servers.URL(1, "courier"))
	stop := run(t, newStore(t, b, single))
	awaitSequences(t, single, last)
	stop()
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
	other := storetest.Open(t, storetest.Empty(t, storetest.Protocols(t)[0]))
	for _, c := range []struct {
		name     string
		bus      *bus.Bus
		database *store.Database
	}{
		{"distributed tables and another log", bustest.New(t), readers},
		{"distributed tables", b, readers},
		{"another database", b, other},
	} {
		wantTablesDiffer(t, c.name+": run", newStore(t, c.bus, c.database).Run(t.Context()))
		for _, repair := range []bool{false, true} {
			v := store.NewVerifier(c.bus, c.database, log, store.VerifyOptions{Repair: repair})
			_, err := v.Verify(t.Context())
			wantTablesDiffer(t, c.name+": verify", err)
		}
		err := store.Rebuild(t.Context(), c.bus, c.database, log, store.RebuildOptions{})
		wantTablesDiffer(t, c.name+": rebuild", err)
	}
	compare(t, b, readers)
	verifyCluster(t, b, c)
}
