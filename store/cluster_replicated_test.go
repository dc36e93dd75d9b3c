package store_test

import (
	"fmt"
	"testing"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// Events of every stream are on each replica of exactly one shard.
func TestReplicas_HaveEveryEventOnce(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1, 1), bustest.New(t)
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
}

// Damaged tables are repaired on each replica.
func TestReplicas_AreRepaired(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1, 1), bustest.New(t)
	repairDamages(t, b, servers)
	for i := range servers.Size() {
		compare(t, b, storetest.Open(t, servers.URL(i, "courier")))
	}
}

// Replicas and ZooKeeper are killed while the store writes.
func TestReplicas_SurviveKills(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	awaitSequences(t, c.Databases()[0], publishJobs(t, b, "first-"))
	for round, kill := range []func(){
		func() { servers.Kill(t, 0) },
		func() { servers.Kill(t, 1) },
		func() { servers.ZooKeeper().Kill(t) },
		func() { servers.Kill(t, 0); servers.ZooKeeper().Kill(t) },
	} {
		last := publishJobs(t, b, fmt.Sprintf("%d-", round))
		kill()
		awaitSequences(t, c.Databases()[0], last)
	}
	stop()
	verifyCluster(t, b, c)
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		compare(t, b, readers)
	}
}

// While a replica cannot fetch parts, no insert is confirmed, and the position does not move. The rows
// that the other replica has already are neither lost nor counted twice afterwards.
func TestReplicas_SurviveStalledFetches(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	d := c.Databases()[0]
	before := publishJobs(t, b, "before-")
	awaitSequences(t, d, before)
	other := storetest.Open(t, servers.URL(1, c.ShardMap().LocalDatabase()))
	must(t, other.Exec(t.Context(), "SYSTEM STOP FETCHES"))
	last := publishJobs(t, b, "stalled-")
	await(t, "rows on one replica", func() bool {
		var rows []struct {
			N uint64 `ch:"n"`
		}
		err := d.Query(t.Context(), &rows, "SELECT count() AS n FROM job_submitted WHERE sequence > ? "+
			"SETTINGS select_sequential_consistency = 0", before[schemas.StreamJob])
		return err == nil && rows[0].N > 0
	})
	if n, err := d.Position(t.Context(), schemas.StreamJob); err != nil || n > before[schemas.StreamJob] {
		t.Errorf("position %d (%v) without a quorum, want %d", n, err, before[schemas.StreamJob])
	}
	must(t, other.Exec(t.Context(), "SYSTEM START FETCHES"))
	awaitSequences(t, d, last)
	stop()
	verifyCluster(t, b, c)
	for i := range servers.Size() {
		compare(t, b, storetest.Open(t, servers.URL(i, "courier")))
	}
}

// A server that lost its disk gets its tables again, and fetches their rows from the other replica.
func TestReplicas_ReplaceALostServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	awaitSequences(t, c.Databases()[0], publishJobs(t, b, "before-"))
	stop()
	servers.Stop(t, 1)
	other := storetest.Open(t, servers.URL(0, "default"))
	await(t, "the end of the lost server", func() bool {
		err := other.Exec(t.Context(), "SYSTEM DROP REPLICA '2' FROM DATABASE "+c.ShardMap().LocalDatabase())
		return err == nil
	})
	servers.Replace(t, 1)
	c = openCluster(t, b, servers)
	stop = run(t, c)
	last := publishJobs(t, b, "after-")
	awaitSequences(t, c.Databases()[0], last)
	readers := storetest.Open(t, servers.URL(1, "courier"))
	all, err := schemas.Migrations()
	must(t, err)
	await(t, "the tables of readers", func() bool {
		var rows []struct {
			N uint64 `ch:"n"`
		}
		err := readers.Query(t.Context(), &rows, "SELECT uniq(number) AS n FROM schema_migrations")
		return err == nil && rows[0].N == uint64(len(all))
	})
	awaitSequences(t, readers, last)
	compare(t, b, readers)
	stop()
	verifyCluster(t, b, c)
}

// A shard is added to replicas whose repaired rows were attached, so that sequential reads do not see
// them.
func TestReplicas_AreResharded(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	awaitSequences(t, c.Databases()[0], publishJobs(t, b, ""))
	stop()
	must(t, c.Databases()[0].Exec(t.Context(), "DELETE FROM node_sample WHERE number % 2 = 0"))
	r, err := c.Verify(t.Context(), store.VerifyOptions{Repair: true})
	must(t, err)
	if found, left := r.Different(); found == 0 || left > 0 {
		t.Fatalf("%d hours differ, %d after the repair", found, left)
	}

	servers.Reconfigure(t, 1, 1)
	must(t, reshard(t, b, servers))
	c = openCluster(t, b, servers)
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
