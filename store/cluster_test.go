package store_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func openCluster(t testing.TB, b *bus.Bus, servers *cluster.Servers) *store.Cluster {
	t.Helper()
	return openClusterAt(t, b, servers, 0)
}

func openClusterAt(t testing.TB, b *bus.Bus, servers *cluster.Servers, server int) *store.Cluster {
	t.Helper()
	c, err := tryClusterAt(t, b, servers.URL(server, "courier"))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func tryCluster(t testing.TB, b *bus.Bus, servers *cluster.Servers) (*store.Cluster, error) {
	return tryClusterAt(t, b, servers.URL(0, "courier"))
}

// tryClusterAt opens the cluster by a server. Statements have the timeout of a store, because one may get
// no answer from a server that is killed or starts.
func tryClusterAt(t testing.TB, b *bus.Bus, url string) (*store.Cluster, error) {
	o := store.Options{URL: url, MaxMessages: 64, MaxAge: 10 * time.Millisecond}
	log, reg := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	return store.OpenCluster(t.Context(), b, o, cluster.Name, log, reg)
}

// Events of every stream are in the table of exactly one shard. Readers see all of them on each
// server, and the position of a stream is the lowest one of the shards.
func TestCluster_WritesEveryEventOnce(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, c.Migrate(t.Context()))
	stopPublishing := publishAll(t, b)
	stop := run(t, c)
	for _, d := range c.Databases() {
		await(t, "rows in "+d.Address(), func() bool {
			n, err := d.Position(t.Context(), "NODE")
			return err == nil && n > 200
		})
	}
	last := stopPublishing()
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	verifyCluster(t, b, c)
}

// The store selects the shard that ClickHouse would select, for any key and weights.
func TestShardOf_IsTheShardOfADistributedTable(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3, 1, 2)
	d := storetest.Open(t, servers.URL(0, "default"))
	for i := range servers.Size() {
		local := storetest.Open(t, servers.URL(i, "default"))
		must(t, local.Exec(t.Context(), "CREATE TABLE l (k LowCardinality(String)) "+
			"ENGINE = MergeTree ORDER BY k"))
	}
	must(t, d.Exec(t.Context(), "CREATE TABLE d AS l ENGINE = "+
		"Distributed(main, default, l, cityHash64(k))"))
	must(t, d.Exec(t.Context(), "INSERT INTO d SELECT randomString(number % 70) FROM numbers(5000) "+
		"SETTINGS distributed_foreground_insert = 1"))
	must(t, d.Exec(t.Context(), "INSERT INTO d SELECT concat('node-', toString(number)) "+
		"FROM numbers(5000) SETTINGS distributed_foreground_insert = 1"))

	m := &schemas.ShardMap{Shards: []schemas.Shard{{Weight: 3}, {Weight: 1}, {Weight: 2}}}
	var rows []struct {
		Key   string `ch:"k"`
		Shard uint32 `ch:"shard"`
	}
	must(t, d.Query(t.Context(), &rows, "SELECT k, _shard_num AS shard FROM d"))
	if len(rows) != 10_000 {
		t.Fatalf("%d rows, want 10000", len(rows))
	}
	for _, r := range rows {
		if got := store.ShardOf(m, r.Key); got != int(r.Shard)-1 {
			t.Fatalf("%q belongs to shard %d, ClickHouse stored it in shard %d", r.Key, got+1, r.Shard)
		}
	}
}

// The store is killed at every point of a batch, and the shards are killed while they are written.
func TestCluster_SurvivesKills(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	c := openCluster(t, b, servers)
	must(t, c.Migrate(t.Context()))
	stopPublishing := publishAll(t, b)
	for round := range 6 {
		runVictim(t, killOrder{
			NATS:       server.URL(),
			ClickHouse: servers.URL(0, "courier"),
			Cluster:    cluster.Name,
			Batch:      1 + round%4,
			Point:      []string{"after", "during", "before"}[round%3],
			Delay:      rand.N(8 * time.Millisecond),
		})
	}
	stop := run(t, c)
	for round := range 2 {
		before := servers.Server(round % 2).Process(t).Pid
		servers.Server(round % 2).Kill(t)
		servers.Server(round%2).AwaitRestart(t, before)
		awaitProgress(t, c.Databases()[round%2])
	}
	last := stopPublishing()
	readers := storetest.Open(t, servers.URL(1, "courier"))
	awaitSequences(t, readers, last)
	stop()
	compare(t, b, readers)
	verifyCluster(t, b, c)
}

// awaitProgress waits until a writer has written a batch.
func awaitProgress(t *testing.T, d *store.Database) {
	t.Helper()
	before := uint64(0)
	await(t, "a batch after a kill", func() bool {
		n, err := d.Position(t.Context(), schemas.StreamNode)
		if err != nil {
			return false
		}
		if before == 0 {
			before = n
		}
		return n > before
	})
}

// A store refuses to start when the configuration of the servers differs from the recorded map.
func TestCluster_RefusesAChangedMap(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	openCluster(t, b, servers)
	for _, c := range []struct {
		weights []int
		want    string
	}{
		{[]int{1, 2}, "shard 2 has weight 2 instead of 1"},
		{[]int{1}, "1 shards instead of 2"},
		{[]int{1, 1, 1}, "3 shards instead of 2"},
		{[]int{1, 1}, ""},
	} {
		servers.Configure(t, cluster.Name, c.weights...)
		opened, err := tryCluster(t, b, servers)
		if opened != nil {
			must(t, opened.Close())
		}
		switch {
		case c.want == "" && err == nil:
		case !errors.Is(err, store.ErrShardsChanged), !strings.Contains(err.Error(), c.want):
			t.Errorf("weights %v: error %v, want ErrShardsChanged with %q", c.weights, err, c.want)
		}
	}
}

type configurationMistake struct {
	name          string
	edited        []int // servers
	before, after string
	want          string // in the error
	isFirst       bool   // the first store refuses it, too
}

// shardMistakes are mistakes in a cluster with two shards of one server. ports are those of the
// servers.
func shardMistakes(ports [2]string) []configurationMistake {
	const host, weight, macro = "<host>127.0.0.1</host>", "<weight>1</weight>", "<shard>1</shard>"
	return []configurationMistake{
		{"macro", []int{0}, macro, "<shard>7</shard>", `shard 1 has macro "7" instead of "1"`, false},
		{"host", []int{0, 1}, host, "<host>localhost</host>", "shard 1 is on localhost:", false},
		{"weight of one server", []int{1}, weight, "<weight>2</weight>",
			"shard 1 has weight 2 instead of 1", true},
		{"host of one server", []int{1}, host, "<host>localhost</host>",
			"differs from the one of", true},
		{"server of two shards", []int{0, 1}, ports[1], ports[0], "is listed twice", true},
	}
}

// replicaMistakes are mistakes in a cluster with one shard of two servers.
func replicaMistakes() []configurationMistake {
	const weight, macro = "<weight>1</weight>", "<shard>1</shard>"
	return []configurationMistake{
		{"macro of one replica", []int{1}, macro, "<shard>2</shard>",
			`has the macro shard "2", another replica of its shard "1"`, true},
		{"no macro of one replica", []int{1}, macro, "",
			`has the macro shard "", another replica of its shard "1"`, true},
		{"no macro of the first replica", []int{0}, macro, "",
			`has the macro shard "1", another replica of its shard ""`, true},
		{"weight of one replica", []int{1}, weight, "<weight>2</weight>",
			"shard 1 has weight 2 instead of 1", true},
	}
}

// A store refuses servers that disagree, also when it records the first map, and servers whose
// macro or host differs from the recorded map.
func TestCluster_RefusesAMistakeInTheConfiguration(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	shards, replicas := cluster.Start(t, 1, 1), cluster.StartReplicas(t, 2, 1)
	var ports [2]string
	for i := range ports {
		u, err := url.Parse(shards.URL(i, "default"))
		must(t, err)
		ports[i] = "<port>" + u.Port() + "</port>"
	}
	for servers, mistakes := range map[*cluster.Servers][]configurationMistake{
		shards: shardMistakes(ports), replicas: replicaMistakes(),
	} {
		b := bustest.New(t)
		openCluster(t, b, servers)
		for _, m := range mistakes {
			for _, server := range m.edited {
				servers.Edit(t, server, m.before, m.after)
			}
			wantRefused(t, m.name, b, servers, m.want)
			if m.isFirst {
				wantRefused(t, m.name+", first start", bustest.New(t), servers, m.want)
			}
			for _, server := range m.edited {
				servers.Undo(t, server)
			}
		}
		openCluster(t, b, servers) // as before the mistakes
	}
}

// wantRefused fails unless a store refuses to start, for a reason that a retry cannot cure.
func wantRefused(t *testing.T, name string, b *bus.Bus, servers *cluster.Servers, want string) {
	t.Helper()
	before, _, err := b.ShardMaps(t.Context())
	must(t, err)
	c, err := tryCluster(t, b, servers)
	if c != nil {
		must(t, c.Close())
	}
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want ErrRefused with %q", name, err, want)
	}
	after, _, err := b.ShardMaps(t.Context())
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%s: the recorded map changed (error %v):\n%s", name, err, diff)
	}
}

// verifyCluster fails if log, tables and roll-ups of any shard differ, or a shard has no rows.
func verifyCluster(t testing.TB, b *bus.Bus, c *store.Cluster) {
	t.Helper()
	r, err := c.Verify(t.Context(), store.VerifyOptions{})
	must(t, err)
	if found := r.Different; found > 0 {
		t.Errorf("%d hours differ", found)
		r.WriteText(t.Output())
	}
	rows := make(map[int]uint64)
	for _, s := range r.Streams {
		rows[s.Shard] += s.Events
	}
	for i := range c.Databases() {
		if rows[i+1] == 0 {
			t.Errorf("shard %d has no events", i+1)
		}
	}
	t.Logf("compared %v events by shard", rows)
}
