package main

import (
	"fmt"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	tables "courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// publishSamples publishes numbered samples of eight nodes, which belong to several shards, and
// returns the last sequence.
func publishSamples(t *testing.T, b *bus.Bus, from, to uint64) (last uint64) {
	t.Helper()
	for n := from; n < to; n++ {
		sequence, err := b.Publish(within(t, patience), sampleOf(fmt.Sprintf("node-%d", n%8), n))
		if err != nil {
			t.Fatal(err)
		}
		last = sequence
	}
	return last
}

// clusterFlagsOf are the flags of a command for the tables of a cluster.
func clusterFlagsOf(server *bustest.Server, servers *cluster.Servers) []string {
	return []string{
		"--nats-url=" + server.URL(),
		"--clickhouse-url=" + servers.URL(0, "courier"),
		"--clickhouse-cluster=" + cluster.Name,
	}
}

// awaitPosition waits until readers of a cluster see all samples up to a sequence.
func awaitPosition(t *testing.T, servers *cluster.Servers, last uint64) {
	t.Helper()
	readers := storetest.Open(t, servers.URL(1, "courier"))
	await(t, "rows of all shards", func() bool {
		n, err := readers.Position(within(t, oneTry), schemas.StreamNode)
		return err == nil && n >= last
	})
}

// storeCommandOf runs a sub-command of courier store on a cluster, and returns its output.
func storeCommandOf(t *testing.T, name string, flags []string) string {
	t.Helper()
	out, err := courier(t, append([]string{"store", name}, flags...)...)
	if err != nil {
		t.Fatalf("courier store %s: %v\n%s", name, err, out)
	}
	return out
}

// The commands write and compare the shards of a cluster.
func TestStoreCluster_WritesAndVerifiesShards(t *testing.T) {
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	last := publishSamples(t, server.Connect(t), 0, 40)
	flags := clusterFlagsOf(server, servers)
	spawn(t, append([]string{"store", "--batch-age=50ms"}, flags...)...)
	awaitPosition(t, servers, last)

	out := storeCommandOf(t, "verify", flags)
	for _, want := range []string{
		"shard 1 NODE", "shard 2 NODE", "Log, tables and roll-ups agree.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("courier store verify prints no %q:\n%s", want, out)
		}
	}
}

// The backup of a cluster, as docs/howto/clickhouse-cluster.md describes it, restores the tables
// and the log after the loss of both: the events that the log has dropped, those of the backup of
// the tables, and those that are only in the later backup of the log.
func TestBackup_RestoresACluster(t *testing.T) {
	longOnly(t)
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	log := server.Connect(t)
	store := spawn(t, append([]string{"store", "--batch-age=50ms"}, clusterFlagsOf(server, servers)...)...)
	dropped := publishSamples(t, log, 0, 40)
	awaitPosition(t, servers, publishSamples(t, log, 40, 80))
	var shards []*tables.Database
	for i := range servers.Size() {
		d := storetest.Open(t, servers.URL(i, "default"))
		mustExec(t, d, "BACKUP DATABASE courier_local TO File('courier-1')")
		shards = append(shards, d)
	}
	nc := dial(t, server.URL())
	purgeBefore(t, nc, dropped+1)
	awaitPosition(t, servers, publishSamples(t, log, 80, 120))
	saved := make(map[string]*streamBackup)
	for _, stream := range streamsOf(t, nc) {
		saved[stream] = backUp(t, nc, stream)
	}
	store.kill()

	other := bustest.NewServer(t)
	nc = dial(t, other.URL())
	for stream, b := range saved {
		b.restore(t, nc, stream)
	}
	for _, d := range shards {
		mustExec(t, d, "DROP DATABASE courier SYNC")
		mustExec(t, d, "DROP DATABASE courier_local SYNC")
		mustExec(t, d, "RESTORE DATABASE courier_local FROM File('courier-1')")
	}
	out := storeCommandOf(t, "rebuild", clusterFlagsOf(other, servers))
	if !strings.Contains(out, "Log, tables and roll-ups agree.") {
		t.Errorf("courier store rebuild prints\n%s", out)
	}
	readers := storetest.Open(t, servers.URL(1, "courier"))
	for _, query := range []string{
		"SELECT count() AS n FROM node_sample",
		"SELECT uniqExact(event_id) AS n FROM node_sample",
		"SELECT sum(samples) AS n FROM node_minute",
	} {
		if n := one(t, readers, query); n != 120 {
			t.Errorf("%s: %d after the restore, want 120", query, n)
		}
	}
}

func mustExec(t *testing.T, d *tables.Database, statement string) {
	t.Helper()
	if err := d.Exec(within(t, patience), statement); err != nil {
		t.Fatal(err)
	}
}

// purgeBefore deletes the samples before a sequence from the log, as its limits would.
func purgeBefore(t *testing.T, nc *nats.Conn, sequence uint64) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	node, err := js.Stream(within(t, patience), schemas.StreamNode)
	if err == nil {
		err = node.Purge(within(t, patience), jetstream.WithPurgeSequence(sequence))
	}
	if err != nil {
		t.Fatal(err)
	}
}
