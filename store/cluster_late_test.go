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

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attachedTables are the tables that attachParts treats.
var attachedTables = []string{"node_sample", "job_epoch"}

// A store drops the late duplicates of rows that were attached, as by the restore of a backup,
// although sequential consistency hides these rows. After a merge it hides those that were inserted,
// too.
func TestReplicas_DropLateDuplicatesOfAttachedRows(t *testing.T) {
	t.Parallel()
	servers, server := cluster.StartReplicated(t, 2, 1), bustest.NewServer(t)
	b := server.Connect(t)
	nc, err := nats.Connect(server.URL())
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)

	c := openCluster(t, b, servers)
	stop := run(t, c)
	awaitSequences(t, c.Databases()[0], publishJobs(t, b, ""))
	originals := readEvents(t, b)
	want := countEvents(t, servers)

	attachParts(t, c) // while the store runs
	publishDuplicates(t, b, js, c, originals)
	if diff := cmp.Diff(want, countEvents(t, servers)); diff != "" {
		t.Errorf("rows after late duplicates (-want +got):\n%s", diff)
	}
	stop()

	attachParts(t, c)
	for _, table := range attachedTables {
		must(t, c.Databases()[0].Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"))
	}
	stop = run(t, openCluster(t, b, servers))
	publishDuplicates(t, b, js, c, originals)
	stop()
	if diff := cmp.Diff(want, countEvents(t, servers)); diff != "" {
		t.Errorf("rows after a merge and late duplicates (-want +got):\n%s", diff)
	}
	verifyCluster(t, b, c)
}

// attachParts detaches the parts of tables, and attaches them again. It fails unless sequential
// consistency hides some of their rows.
func attachParts(t *testing.T, c *store.Cluster) {
	t.Helper()
	d := c.Databases()[0]
	for _, table := range attachedTables {
		var partitions []struct {
			ID string `ch:"id"`
		}
		must(t, d.Query(t.Context(), &partitions, "SELECT DISTINCT partition_id AS id "+
			"FROM system.parts WHERE database = currentDatabase() AND table = ? AND active", table))
		for _, p := range partitions {
			for _, verb := range []string{"DETACH", "ATTACH"} {
				statement := "ALTER TABLE " + table + " " + verb + " PARTITION ID '" + p.ID + "'"
				must(t, d.Exec(t.Context(), statement))
			}
		}
		count := "SELECT count() AS n FROM " + table
		all := selectNumber(t, d, count+" SETTINGS select_sequential_consistency = 0")
		if n := selectNumber(t, d, count); n == all {
			t.Errorf("sequential consistency shows all rows of %s: the test proves nothing", table)
		}
	}
}

// publishDuplicates publishes events again without message IDs, and waits until a store has
// written up to them.
func publishDuplicates(
	t *testing.T, b *bus.Bus, js jetstream.JetStream, c *store.Cluster, events []schemas.Event,
) {
	t.Helper()
	for _, e := range events {
		publishDuplicate(t, js, e)
	}
	last := make(map[string]uint64)
	for _, d := range schemas.StoreDurables() {
		sequence, err := b.LastSequence(t.Context(), d.Stream)
		must(t, err)
		last[d.Stream] = sequence
	}
	awaitSequences(t, c.Databases()[0], last)
}

// readEvents returns the events of all streams.
func readEvents(t *testing.T, b *bus.Bus) (all []schemas.Event) {
	t.Helper()
	for _, d := range schemas.StoreDurables() {
		for _, r := range readLog(t, b, d.Stream) {
			all = append(all, r.Event)
		}
	}
	return all
}

// countEvents counts the rows of each table, and the samples in a roll-up, on one server after
// another.
func countEvents(t *testing.T, servers *cluster.Servers) (all []map[string]uint64) {
	t.Helper()
	for i := range servers.Size() {
		readers, n := storetest.Open(t, servers.URL(i, "courier")), make(map[string]uint64)
		for _, table := range schemas.Tables() {
			n[table.Name] = selectNumber(t, readers, "SELECT count() AS n FROM "+table.Name)
		}
		n["node_minute"] = selectNumber(t, readers, "SELECT sum(samples) AS n FROM node_minute")
		all = append(all, n)
	}
	return all
}

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
