package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// replicas are two shards with two replicas each, whose log and tables several tests share: creating
// the tables takes longer than most of these tests. Each test leaves every event in the tables once.
type replicas struct {
	servers *cluster.Servers
	server  *bustest.Server
	bus     *bus.Bus
	cluster *store.Cluster
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	r := &replicas{servers: cluster.StartReplicated(t, 2, 1, 1), server: bustest.NewServer(t)}
	r.bus = r.server.Connect(t)
	r.cluster = openCluster(t, r.bus, r.servers)
	must(t, r.cluster.Migrate(t.Context()))
	for _, c := range []struct {
		name string
		test func(t *testing.T, r *replicas)
	}{
		{"HaveEveryEventOnce", replicasHaveEveryEventOnce},
		{"AreRepaired", replicasAreRepaired},
		{"SurviveKillsOfServers", replicasSurviveKillsOfServers},
		{"SurviveKillsOfTheWriter", replicasSurviveKillsOfTheWriter},
		{"SurviveStalledFetches", replicasSurviveStalledFetches},
		{"ChangeTheirTables", replicasChangeTheirTables},
		{"SurviveTheLossOfAShard", replicasSurviveTheLossOfAShard}, // its end stops the shard
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, r)
			r.compare(t)
		})
	}
}

// run runs a store until the returned function is called, or the test ends.
func (r *replicas) run(t *testing.T) (stop func()) {
	t.Helper()
	return run(t, openCluster(t, r.bus, r.servers))
}

// await waits until all shards have a log up to these sequences.
func (r *replicas) await(t *testing.T, last map[string]uint64) {
	t.Helper()
	for _, d := range r.cluster.Databases() {
		awaitSequences(t, d, last)
	}
}

// compare fails unless the tables have the events of the log, on each server and as a verifier sees
// them.
func (r *replicas) compare(t *testing.T) {
	t.Helper()
	last := make(map[string]uint64)
	for _, d := range schemas.StoreDurables() {
		sequence, err := r.bus.LastSequence(t.Context(), d.Stream)
		must(t, err)
		last[d.Stream] = sequence
	}
	r.settle(t)
	for i := range r.servers.Size() {
		readers := storetest.Open(t, r.servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		compare(t, r.bus, readers)
	}
	verifyCluster(t, r.bus, r.cluster)
}

// settle waits until the replicas of each shard have made the same deletions and merges. A batch that is
// written again deletes rows, and waits for that on one replica. Another one, whose connection to
// ZooKeeper was lost, may learn of it later. It may also keep a block whose insert was given up for five
// minutes, or until a merge of the blocks around it.
func (r *replicas) settle(t *testing.T) {
	t.Helper()
	const made = "SELECT table || ' ' || max(mutation_id) FROM system.mutations " +
		"WHERE database = currentDatabase() GROUP BY table ORDER BY table"
	const left = "SELECT count() AS n FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
	const replicasOfShard = 2
	for i := 0; i < r.servers.Size(); i += replicasOfShard {
		first, second := r.local(t, i), r.local(t, i+1)
		await(t, "the same deletions on both replicas", func() bool {
			return slices.Equal(values[string](t, first, made), values[string](t, second, made)) &&
				selectNumber(t, first, left) == 0 && selectNumber(t, second, left) == 0
		})
		for _, table := range store.TableNames() {
			must(t, first.Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL SETTINGS alter_sync = 2"))
		}
	}
}

// local opens the tables of a server itself.
func (r *replicas) local(t *testing.T, server int) *store.Database {
	t.Helper()
	return storetest.Open(t, r.servers.URL(server, r.cluster.ShardMap().LocalDatabase()))
}

// Events of every stream are on each replica of exactly one shard.
func replicasHaveEveryEventOnce(t *testing.T, r *replicas) {
	stop := r.run(t)
	r.await(t, publishJobs(t, r.bus, ""))
	stop()
}

// Damaged tables are repaired on each replica.
func replicasAreRepaired(t *testing.T, r *replicas) {
	rebuildDamages(t, r.bus, r.servers)
}

// Replicas and ZooKeeper are killed while the store writes.
func replicasSurviveKillsOfServers(t *testing.T, r *replicas) {
	stop := r.run(t)
	for round, kill := range []func(){
		func() { r.servers.Server(0).Kill(t) },
		func() { r.servers.Server(1).Kill(t) },
		func() { r.servers.ZooKeeper.Kill(t) },
		func() { r.servers.Server(2).Kill(t); r.servers.ZooKeeper.Kill(t) },
	} {
		last := publishJobs(t, r.bus, fmt.Sprintf("kill-%d-", round))
		kill()
		r.await(t, last)
	}
	stop()
}

// The writer is killed at every point of a batch. With COURIER_LONG, twelve times.
func replicasSurviveKillsOfTheWriter(t *testing.T, r *replicas) {
	rounds := 3
	if os.Getenv("COURIER_LONG") != "" {
		rounds = 12
	}
	stopPublishing := publishAll(t, r.bus)
	for round := range rounds {
		runVictim(t, killOrder{
			NATS:       r.server.URL(),
			ClickHouse: r.servers.URL(0, "courier"),
			Cluster:    cluster.Name,
			Batch:      1 + round%4,
			Point:      []string{"after", "during", "before"}[round%3],
			Delay:      rand.N(50 * time.Millisecond),
		})
	}
	last := stopPublishing()
	stop := r.run(t)
	r.await(t, last)
	stop()
}

// Both replicas of a shard are lost. The other shard gets its rows, and the lost one when it returns.
func replicasSurviveTheLossOfAShard(t *testing.T, r *replicas) {
	stop := r.run(t)
	r.await(t, publishJobs(t, r.bus, "before-loss-"))
	r.servers.Server(2).Stop(t)
	r.servers.Server(3).Stop(t)
	last := publishJobs(t, r.bus, "loss-")
	awaitSequences(t, r.cluster.Databases()[0], last)
	r.servers.Restart(t, 2)
	r.servers.Restart(t, 3)
	r.await(t, last)
	stop()
}

// While a replica cannot fetch parts, no insert is confirmed, the position does not move, and a history
// has no later events. The rows that the other replica has already are neither lost nor counted twice
// afterwards.
func replicasSurviveStalledFetches(t *testing.T, r *replicas) {
	stop := r.run(t)
	before := publishJobs(t, r.bus, "before-stall-")
	r.await(t, before)
	other := r.local(t, 1)
	must(t, other.Exec(t.Context(), "SYSTEM STOP FETCHES"))
	last := publishJobs(t, r.bus, "stalled-")
	d := r.cluster.Databases()[0]
	await(t, "rows on one replica", func() bool {
		const behind = "SELECT count() FROM job_submitted WHERE sequence > ? SETTINGS select_sequential_consistency = 0"
		n, err := store.Values[uint64](t.Context(), d, behind, before[schemas.StreamJob])
		return err == nil && n[0] > 0
	})
	if n, err := d.Position(t.Context(), schemas.StreamJob); err != nil || n > before[schemas.StreamJob] {
		t.Errorf("position %d (%v) without a quorum, want %d", n, err, before[schemas.StreamJob])
	}
	for i := range r.servers.Size() {
		readers := storetest.Open(t, r.servers.URL(i, "courier"))
		if n := wantNoGaps(t, r.bus, readers); n > before[schemas.StreamJob] {
			t.Errorf("server %d has a history up to %d, want %d", i, n, before[schemas.StreamJob])
		}
	}
	must(t, other.Exec(t.Context(), "SYSTEM START FETCHES"))
	r.await(t, last)
	stop()
}

// A replica refuses to change a table until it has made the changes of the others. A migration waits
// for that.
func replicasChangeTheirTables(t *testing.T, r *replicas) {
	change := func(d *store.Database, days int) error {
		const statement = "ALTER TABLE node_sample MODIFY TTL toDateTime(at) + INTERVAL %d DAY"
		return d.ChangeTable(t.Context(), fmt.Sprintf(statement, days))
	}
	first, second := r.local(t, 0), r.local(t, 1)
	must(t, second.Exec(t.Context(), "SYSTEM STOP REPLICATION QUEUES node_sample"))
	must(t, change(first, 500))
	ended := make(chan error, 1)
	go func() { ended <- change(second, 600) }()
	const waiting = "SELECT count() AS n FROM system.processes WHERE query LIKE 'SYSTEM SYNC REPLICA%'"
	await(t, "the change to wait", func() bool {
		return len(ended) > 0 || selectNumber(t, second, waiting) > 0
	})
	must(t, second.Exec(t.Context(), "SYSTEM START REPLICATION QUEUES node_sample"))
	must(t, <-ended)

	for _, d := range r.cluster.Databases() {
		must(t, change(d, 700))
	}
	for i := range r.servers.Size() {
		d := r.local(t, i)
		await(t, "the change on a replica", func() bool {
			return selectNumber(t, d, "SELECT count() AS n FROM system.tables WHERE "+
				"database = currentDatabase() AND name = 'node_sample' "+
				"AND engine_full LIKE '%toIntervalDay(700)%'") == 1
		})
	}
}

// A third replica may lack rows although most replicas have them. A history reads a replica that has
// them, or fails, but leaves out nothing.
func TestReplicas_LagWithoutGaps(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 3, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	before := publishJobs(t, b, "before-")
	lagging := storetest.Open(t, servers.URL(2, c.ShardMap().LocalDatabase()))
	await(t, "the tables of the third replica", func() bool {
		n, err := lagging.Position(t.Context(), schemas.StreamJob)
		return err == nil && n >= before[schemas.StreamJob] && readAll(t, lagging) == nil
	})
	wantNoGaps(t, b, lagging)
	must(t, lagging.Exec(t.Context(), "SYSTEM STOP FETCHES job_epoch"))
	last := publishJobs(t, b, "after-")
	awaitSequences(t, lagging, last)
	err := readAll(t, lagging)
	if !errors.Is(err, store.ErrReplicaBehind) {
		t.Errorf("history of a replica that lacks epochs: error %v, want ErrReplicaBehind", err)
	}
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		if n := wantNoGaps(t, b, readers); n < last[schemas.StreamJob] {
			t.Errorf("server %d has a history up to %d, want %d", i, n, last[schemas.StreamJob])
		}
	}
	must(t, lagging.Exec(t.Context(), "SYSTEM START FETCHES job_epoch"))
	await(t, "the epochs of the third replica", func() bool {
		return readAll(t, lagging) == nil
	})
	wantNoGaps(t, b, lagging)
	stop()
	verifyCluster(t, b, c)
	compare(t, b, lagging)
}

func readAll(t *testing.T, d *store.Database) error {
	t.Helper()
	drop := func(schemas.Event) error { return nil }
	return store.NewHistory(d).Events(t.Context(), time.Time{}, drop)
}

// wantNoGaps fails if a history lacks an event before its last one. It returns the last sequence.
func wantNoGaps(t *testing.T, b *bus.Bus, d *store.Database) (last uint64) {
	t.Helper()
	found := make(map[uint64]bool)
	err := store.NewHistory(d).Events(t.Context(), time.Time{}, func(e schemas.Event) error {
		last = sequenceOf(e)
		found[last] = true
		return nil
	})
	must(t, err)
	missing := 0
	for _, r := range readLog(t, b, schemas.StreamJob) {
		isPast := sequenceOf(r.Event) > 0
		if isPast && r.Sequence <= last && !found[r.Sequence] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("the history at %s lacks %d events before %d", d.Address(), missing, last)
	}
	return last
}

// sequenceOf returns the sequence of an event that belongs to a history, and 0 for others.
func sequenceOf(e schemas.Event) uint64 {
	switch e := e.(type) {
	case *schemas.Started:
		return e.Sequence
	case *schemas.Epoch:
		return e.Sequence
	case *schemas.Ended:
		return e.Sequence
	}
	return 0
}

// A server that lost its disk gets its tables again, and fetches their rows from the other replica.
func TestReplicas_ReplaceALostServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.StartReplicated(t, 2, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	stop := run(t, c)
	awaitSequences(t, c.Databases()[0], publishJobs(t, b, "before-"))
	stop()
	servers.Server(1).Stop(t)
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
	await(t, "the tables of readers", func() bool {
		n, err := store.Values[uint32](t.Context(), readers, "SELECT max(number) FROM schema_migrations")
		return err == nil && n[0] == uint32(len(schemas.Migrations()))
	})
	awaitSequences(t, readers, last)
	compare(t, b, readers)
	stop()
	verifyCluster(t, b, c)
}
