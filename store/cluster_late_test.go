package store_test

import (
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// A server is lost with positions that no other replica has. Its shard is written, and can be
// verified.
func TestReplicas_MissThePositionsOfALostServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 3, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	replicas := openLocals(t, servers, c)
	last := publishJobs(t, b, "before-")
	for _, d := range replicas {
		awaitSequences(t, d, last)
	}
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM STOP FETCHES log_position"))
	}
	awaitSequences(t, replicas[0], publishJobs(t, b, "unfetched-"))
	stop()
	servers.Stop(t, 0)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM START FETCHES log_position"))
	}

	c = openClusterAtSecond(t, b, servers)
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
	c := openClusterAtSecond(t, b, servers)
	stop := run(t, c)
	replicas := openLocals(t, servers, c)
	last := publishJobs(t, b, "before-")
	for _, d := range replicas {
		awaitSequences(t, d, last)
	}

	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM STOP FETCHES job_run"))
	}
	last = publishJobs(t, b, "alone-")
	const unfetched = "SELECT count() AS n FROM system.replication_queue " +
		"WHERE table = 'job_run' AND type = 'GET_PART'"
	await(t, "a part that only one server has", func() bool {
		return selectNumber(t, replicas[1], unfetched) > 0
	})
	servers.Stop(t, 0)
	for _, d := range replicas[1:] {
		must(t, d.Exec(t.Context(), "SYSTEM START FETCHES job_run"))
	}
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
		return r.Different() == 0
	})
	verifyCluster(t, b, c) // on the first server
}

// openLocals opens the tables of each server itself.
func openLocals(t *testing.T, servers *cluster.Servers, c *store.Cluster) (all []*store.Database) {
	t.Helper()
	for i := range servers.Size() {
		all = append(all, storetest.Open(t, servers.URL(i, c.ShardMap().LocalDatabase())))
	}
	return all
}

// openClusterAtSecond opens the cluster by its second server, because a test stops the first one. Its
// statements have the default timeout, so that a wait for a lost server ends.
func openClusterAtSecond(t *testing.T, b *bus.Bus, servers *cluster.Servers) *store.Cluster {
	t.Helper()
	o := store.Options{URL: servers.URL(1, "courier"), MaxAge: 10 * time.Millisecond}
	c, err := store.OpenCluster(t.Context(), b, o, cluster.Name, discard, nil)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}
