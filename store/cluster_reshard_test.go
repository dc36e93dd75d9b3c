package store_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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

func reshard(t *testing.T, b *bus.Bus, servers *cluster.Servers) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o := store.Options{URL: servers.URL(0, "courier"), Timeout: patience}
	return store.Reshard(ctx, b, o, cluster.Name, slog.New(slog.DiscardHandler))
}

// Shards are added with weights, and removed. Each time the tables have every event once, also the
// events that arrived in between. At the end they keep the rows of events that the log has dropped.
func TestReshard_KeepsEveryEventOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	c := openCluster(t, b, servers)
	events := func(prefix string) map[string]uint64 {
		s := newTestLog()
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			s.job(prefix+name, time.Minute, schemas.EventFinished)
			for n := range uint64(40) {
				s.sample(prefix+name, n)
			}
		}
		return publish(t, b, s.events)
	}
	stop := run(t, c)
	last := events("first-")
	awaitSequences(t, storetest.Open(t, servers.URL(0, "courier")), last)
	if err := reshard(t, b, servers); err != nil {
		t.Errorf("reshard without a change: %v", err)
	}
	stop()

	for _, step := range []struct {
		name    string
		weights []int
	}{{"grown-", []int{1, 3, 1}}, {"shrunk-", []int{2}}} {
		servers.Reconfigure(t, step.weights...)
		if _, err := tryCluster(t, b, servers); !errors.Is(err, store.ErrShardsChanged) {
			t.Fatalf("%s a store starts with %v, want ErrShardsChanged", step.name, err)
		}
		last := events(step.name)
		must(t, reshard(t, b, servers))
		c := openCluster(t, b, servers)
		if n := len(c.Databases()); n != len(step.weights) {
			t.Fatalf("%d shards, want %d", n, len(step.weights))
		}
		stop := run(t, c)
		for name, sequence := range events(step.name + "late-") {
			last[name] = sequence
		}
		readers := storetest.Open(t, servers.URL(0, "courier"))
		awaitSequences(t, readers, last)
		if err := reshard(t, b, servers); err != nil {
			t.Errorf("reshard again: %v", err)
		}
		stop()
		compare(t, b, readers)
		verifyCluster(t, b, c)
	}
	keepDroppedEvents(t, b, server, servers)
}

// countSamples counts the rows of the largest table.
const countSamples = "SELECT count() AS n FROM node_sample"

// dropSamples makes the log drop all samples.
func dropSamples(t *testing.T, server *bustest.Server) {
	t.Helper()
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	node, err := js.Stream(t.Context(), schemas.StreamNode)
	must(t, err)
	must(t, node.Purge(t.Context()))
}

// keepDroppedEvents reshards after the log has dropped all samples.
func keepDroppedEvents(
	t *testing.T, b *bus.Bus, server *bustest.Server, servers *cluster.Servers,
) {
	t.Helper()
	const minutes = "SELECT sum(samples) AS n FROM node_minute"
	readers := storetest.Open(t, servers.URL(0, "courier"))
	before := selectNumber(t, readers, countSamples)
	dropSamples(t, server)
	servers.Reconfigure(t, 1, 1)
	must(t, reshard(t, b, servers))
	readers = storetest.Open(t, servers.URL(1, "courier"))
	for _, query := range []string{countSamples, minutes} {
		if n := selectNumber(t, readers, query); n != before {
			t.Errorf("%s: %d after the reshard, want %d", query, n, before)
		}
	}
}

// The new tables keep rows as long as the old ones did, and lose none at the next merge. Where the
// old shards differ, the longer retention counts.
func TestReshard_KeepsRetentions(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, c.Migrate(t.Context()))
	databases := c.Databases()
	days := map[string]int{"node_sample": 0, "node_hour": 4000, "job_advice": 30}
	_, err := store.ApplyRetentions(t.Context(), databases, days, false)
	must(t, err)
	must(t, databases[1].SetRetention(t.Context(), "job_advice", 400))
	must(t, databases[0].SetRetention(t.Context(), "job_started", 800))

	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, publish(t, b, oldSamples(t).events))
	stop()
	servers.Reconfigure(t, 1, 1, 1)
	must(t, reshard(t, b, servers))

	c = openCluster(t, b, servers)
	rows := uint64(0)
	for _, d := range c.Databases() {
		wantRetentions(t, d, map[string]string{
			"node_sample": "forever",
			"node_minute": "400 days",
			"node_hour":   "4000 days",
			"job_advice":  "400 days",
			"job_started": "forever",
		})
		must(t, d.Exec(t.Context(), "OPTIMIZE TABLE node_sample FINAL"))
		rows += selectNumber(t, d, countSamples)
	}
	if rows != 40 {
		t.Errorf("%d samples after a merge, want 40", rows)
	}
	r, err := c.Verify(t.Context(), store.VerifyOptions{})
	must(t, err)
	if found, _ := r.Different(); found > 0 {
		t.Errorf("%d hours differ", found)
	}
}

// wantRetentions fails unless tables of a database have certain retentions.
func wantRetentions(t *testing.T, d *store.Database, wanted map[string]string) {
	t.Helper()
	all, err := d.Retentions(t.Context(), nil)
	must(t, err)
	for table, want := range wanted {
		if got := retentionOf(t, all, table).Period; got != want {
			t.Errorf("%s at %s is kept %s, want %s", table, d.Address(), got, want)
		}
	}
}

// A reshard waits for another one, or a repair, before it reads the shard map and drops anything.
func TestReshard_WaitsForAnotherOne(t *testing.T) {
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	stop := run(t, openCluster(t, b, servers))
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, publishJobs(t, b, ""))
	stop()
	servers.Reconfigure(t, 1, 2)

	held, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := b.Hold(t.Context(), schemas.LeaseRepair, schemas.LeaseTTL, func(context.Context) error {
			close(held)
			<-release
			return nil
		})
		if err != nil {
			t.Errorf("hold the lease: %v", err)
		}
	})
	<-held
	wantWaiting(t, server.Connect(t), servers)
	for range 2 {
		other := server.Connect(t)
		all.Go(func() {
			if err := reshard(t, other, servers); err != nil {
				t.Errorf("one of two concurrent reshards: %v", err)
			}
		})
	}
	close(release)
	all.Wait()
	c := openCluster(t, b, servers)
	if v := c.ShardMap().Version; v != 2 {
		t.Errorf("version %d of the shard map, want 2", v)
	}
	compare(t, b, storetest.Open(t, servers.URL(1, "courier")))
	verifyCluster(t, b, c)
}

// wantWaiting fails if a reshard ends, or creates a database, while another process holds the lease.
func wantWaiting(t *testing.T, b *bus.Bus, servers *cluster.Servers) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	o := store.Options{URL: servers.URL(0, "courier"), Timeout: patience}
	err := store.Reshard(ctx, b, o, cluster.Name, slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reshard during another one: error %v, want it to wait", err)
	}
	const created = "SELECT count() AS n FROM system.databases WHERE name = 'courier_v2'"
	if n := selectNumber(t, storetest.Open(t, servers.URL(0, "default")), created); n > 0 {
		t.Error("the new database was created during another reshard")
	}
}
