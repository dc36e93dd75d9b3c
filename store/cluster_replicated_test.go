package store_test

import (
	"fmt"
	"os"
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

// A reshard copies the rows that a repair has attached, although lookups with sequential consistency
// do not see them until the next insert. When it ends, every new replica has its rows. With
// COURIER_LONG the shard is split, which takes two more servers.
func TestReplicas_KeepRepairedRowsInAReshard(t *testing.T) {
	t.Parallel()
	servers, server := cluster.StartReplicated(t, 2, 1), bustest.NewServer(t)
	b := server.Connect(t)
	c := openCluster(t, b, servers)
	d := c.Databases()[0]
	stop := run(t, c)
	awaitSequences(t, d, publishJobs(t, b, "before-"))
	stop()
	samples := selectNumber(t, d, countSamples)
	must(t, d.Exec(t.Context(), "DELETE FROM node_sample WHERE cityHash64(event_id) % 3 = 0"))
	r, err := c.Verify(t.Context(), store.VerifyOptions{Repair: true})
	must(t, err)
	if found, left := r.Different(); found == 0 || left > 0 {
		t.Fatalf("%d hours differ, %d after the repair", found, left)
	}
	if seen := selectNumber(t, d, countSamples); seen == samples {
		t.Error("sequential consistency shows the attached rows: the test proves nothing")
	}
	dropSamples(t, server)

	weights := []int{2}
	if os.Getenv("COURIER_LONG") != "" {
		weights = []int{1, 1}
	}
	servers.Reconfigure(t, weights...)
	must(t, reshard(t, b, servers))
	c = openCluster(t, b, servers)
	wantOnEachReplica(t, servers, c.ShardMap(), samples)
	stop = run(t, c)
	last := publishJobs(t, b, "after-")
	for i := range servers.Size() {
		awaitSequences(t, storetest.Open(t, servers.URL(i, "courier")), last)
	}
	stop()
	verifyCluster(t, b, c)
}

// wantOnEachReplica fails unless the first replicas of all shards have the samples, and the second
// replicas, too.
func wantOnEachReplica(
	t *testing.T, servers *cluster.Servers, m *schemas.ShardMap, samples uint64,
) {
	t.Helper()
	for replica := range 2 {
		n := uint64(0)
		for shard := range m.Shards {
			own := storetest.Open(t, servers.URL(2*shard+replica, m.LocalDatabase()))
			n += selectNumber(t, own, countSamples)
		}
		if n != samples {
			t.Errorf("the replicas %d have %d samples, want %d", replica+1, n, samples)
		}
	}
}
