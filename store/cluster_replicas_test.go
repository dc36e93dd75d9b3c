package store_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// startReplicas starts one shard with two servers that have all migrations. Without a Keeper their
// tables are not replicated: each server only has the rows that were inserted there.
func startReplicas(t *testing.T) *cluster.Servers {
	t.Helper()
	servers := cluster.StartReplicas(t, 2, 1)
	statements, err := store.Schema(cluster.Name)
	must(t, err)
	own := slices.Index(statements, "USE courier") + 1
	for i := range servers.Size() {
		must(t, storetest.Open(t, servers.URL(i, "courier_local")).Migrate(t.Context()))
		readers := storetest.Open(t, servers.URL(i, "courier"))
		for _, s := range statements[own:] {
			must(t, readers.Exec(t.Context(), s))
		}
	}
	return servers
}

func openReplicas(t *testing.T, b *bus.Bus, servers *cluster.Servers) *store.Cluster {
	t.Helper()
	o := store.Options{URL: servers.URL(1, "courier"), MaxAge: 10 * time.Millisecond, Timeout: patience}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := store.OpenCluster(t.Context(), b, o, cluster.Name, log, nil)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// A store starts and writes although a replica is down that lacks tables. When the replica is back,
// the store creates them.
func TestCluster_StartsWithoutAReplica(t *testing.T) {
	t.Parallel()
	servers, b := startReplicas(t), bustest.New(t)
	openReplicas(t, b, servers) // records the shards
	incomplete := storetest.Open(t, servers.URL(0, "default"))
	must(t, incomplete.Exec(t.Context(), "DROP DATABASE courier SYNC"))
	servers.Server(0).Stop(t)

	c := openReplicas(t, b, servers)
	must(t, c.Migrate(t.Context()))
	last := publishJobs(t, b, "")
	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(1, "courier"))
	awaitSequences(t, readers, last)
	compare(t, b, readers)

	const distributed = "SELECT count() AS n FROM system.tables " +
		"WHERE database = 'courier' AND engine = 'Distributed'"
	want := selectNumber(t, readers, distributed)
	servers.Restart(t, 0)
	returned := storetest.Open(t, servers.URL(0, "default"))
	await(t, "the tables of the replica", func() bool {
		return selectNumber(t, returned, distributed) == want
	})
	stop()
}

// A new writer stops the statements of the previous one on all replicas.
func TestCluster_StopsThePreviousWriterOnEveryReplica(t *testing.T) {
	t.Parallel()
	servers, b := startReplicas(t), bustest.New(t)
	replica := storetest.Open(t, servers.URL(1, "courier_local"))
	ended := make(chan error, 1)
	before := replica.AsWriter(t.Context(), schemas.StreamNode)
	go func() {
		ended <- replica.Exec(before, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT Null")
	}()
	await(t, "the statement of the previous writer", func() bool {
		return selectNumber(t, replica, "SELECT count() AS n FROM system.processes "+
			"WHERE startsWith(query_id, 'courier/courier_local/NODE/')") > 0
	})
	stop := run(t, openReplicas(t, b, servers))
	defer stop()
	if err := <-ended; err == nil {
		t.Error("the statement of the previous writer ended by itself")
	}
}

// A replica may keep a block that was given up and repeated. A repeated batch computes roll-ups on another
// one, or fails. The test inserts the block again on the first server, then on both.
func TestCluster_ComputesNothingOfDoubleRows(t *testing.T) {
	t.Parallel()
	servers, b := startReplicas(t), bustest.New(t)
	c := openReplicas(t, b, servers)
	writer, repeated := writeFifty(t, c.Databases()[0])
	repeated.Redelivered = true
	for _, d := range openLocals(t, servers, c) {
		must(t, writer.Write(t.Context(), repeated))
		wantNumber(t, d, 50, "SELECT sum(samples) AS n FROM node_minute")
		must(t, d.Exec(t.Context(), "INSERT INTO node_sample SELECT * FROM node_sample WHERE number < 20"+again))
	}
	if err := writer.Write(t.Context(), repeated); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error %v, want one that names an event that is there twice", err)
	}
}

// Statements of a shard with replicas wait for most of them; those of a single server do not.
func TestCluster_WritesWithAQuorumOfReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		replicas                     int
		quorum, parallel, sequential string
	}{
		{1, "0", "1", "0"},
		{2, "auto", "0", "1"},
	} {
		servers := cluster.StartReplicas(t, c.replicas, 1)
		for _, d := range openCluster(t, bustest.New(t), servers).Databases() {
			must(t, storetest.Open(t, servers.URL(0, "courier_local")).Migrate(t.Context()))
			for setting, want := range map[string]string{
				"insert_quorum":                 c.quorum,
				"insert_quorum_parallel":        c.parallel,
				"select_sequential_consistency": c.sequential,
			} {
				got := values[string](t, d, "SELECT value FROM system.settings WHERE name = ?", setting)
				if len(got) != 1 || got[0] != want {
					t.Errorf("%d replicas: %s is %v, want %s", c.replicas, setting, got, want)
				}
			}
		}
	}
}

// A server is lost with positions that no other replica has. Its shard is written, and can be
// verified.
func TestReplicas_MissThePositionsOfALostServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 3, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	replicas, stop := runReplicas(t, b, servers, c)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM STOP FETCHES log_position"))
	}
	awaitSequences(t, replicas[0], publishJobs(t, b, "unfetched-"))
	stop()
	servers.Server(0).Stop(t)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM START FETCHES log_position"))
	}

	c = openClusterAt(t, b, servers, 1)
	verifyCluster(t, b, c)
	stop = run(t, c)
	awaitSequences(t, replicas[1], publishJobs(t, b, "lost-"))
	stop()
	verifyCluster(t, b, c)
}

// A server is lost with a part of a roll-up that no other replica has. The other two are written.
// When the server returns, the roll-up is right.
func TestReplicas_ContinueAnInsertOfALostServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 3, 1), bustest.New(t)
	c := openClusterAt(t, b, servers, 1)
	replicas, stop := runReplicas(t, b, servers, c)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM STOP FETCHES job_run"))
	}
	publishJobs(t, b, "alone-")
	const unfetched = "SELECT count() AS n FROM system.replication_queue " +
		"WHERE table = 'job_run' AND type = 'GET_PART'"
	await(t, "a part that only one server has", func() bool {
		return selectNumber(t, replicas[1], unfetched) > 0
	})
	servers.Server(0).Stop(t)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM START FETCHES job_run"))
	}
	// A position that only the lost server has stays hidden until the next one of its stream.
	last := publishJobs(t, b, "lost-")
	awaitSequences(t, replicas[1], last)
	verifyCluster(t, b, c)

	stop()
	servers.Restart(t, 0)
	await(t, "the returned server without the part", func() bool {
		n, err := replicas[0].Position(t.Context(), schemas.StreamJob)
		if err != nil || n < last[schemas.StreamJob] {
			return false
		}
		r, err := c.Verify(t.Context(), store.VerifyOptions{})
		if err != nil {
			return false
		}
		return r.Different == 0
	})
	verifyCluster(t, b, c) // on the first server
}

// runReplicas runs a store until each replica has some jobs.
func runReplicas(
	t *testing.T, b *bus.Bus, servers *cluster.Servers, c *store.Cluster,
) (replicas []*store.Database, stop func()) {
	t.Helper()
	stop = run(t, c)
	replicas = openLocals(t, servers, c)
	last := publishJobs(t, b, "before-")
	for _, d := range replicas {
		awaitSequences(t, d, last)
	}
	return replicas, stop
}

// openLocals opens the tables of each server itself.
func openLocals(t *testing.T, servers *cluster.Servers, c *store.Cluster) (all []*store.Database) {
	t.Helper()
	for i := range servers.Size() {
		all = append(all, storetest.Open(t, servers.URL(i, c.ShardMap().LocalDatabase())))
	}
	return all
}
