package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// countSamples counts the rows of the largest table.
const countSamples = "SELECT count() AS n FROM node_sample"

// dropEvents makes the log drop all events.
func dropEvents(t *testing.T, server *bustest.Server) {
	t.Helper()
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	for _, d := range schemas.StoreDurables() {
		stream, err := js.Stream(t.Context(), d.Stream)
		must(t, err)
		must(t, stream.Purge(t.Context()))
	}
}

// copyStatements returns the statements of docs/howto/clickhouse-cluster.md that copy the rows of old
// tables to those of a cluster with other shards.
func copyStatements(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "howto", "clickhouse-cluster.md"))
	must(t, err)
	block := regexp.MustCompile("(?s)```sql\n(.*?);\n```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no statements")
	}
	return strings.Split(string(block[1]), ";\n")
}

// The steps of docs/howto/clickhouse-cluster.md change the number of shards: a second store fills
// other tables while the first one runs, and the page's statements copy what the log has dropped,
// and the roll-ups of samples that the old tables have dropped.
func TestCluster_ChangesItsShards(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	first := run(t, openCluster(t, b, servers))
	old := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, old, publishJobs(t, b, "dropped-"))
	samples := selectNumber(t, old, countSamples)
	dropEvents(t, server)
	// An hour of samples that their table has dropped.
	must(t, old.Exec(t.Context(), "INSERT INTO node_minute (node, minute, samples) "+
		"SETTINGS distributed_foreground_insert = 1 "+
		"SELECT 'old', toDateTime('2026-01-01 00:00:00', 'UTC') + 60 * number, 30 FROM numbers(60)"))
	last := publishJobs(t, b, "kept-")

	servers.Configure(t, "main_3", 1, 3, 1)
	c, err := store.OpenCluster(t.Context(), b, store.Options{
		URL: servers.URL(2, "courier_3"), MaxAge: 10 * time.Millisecond, Timeout: patience,
	}, "main_3", discard, nil)
	must(t, err)
	defer c.Close()
	second := run(t, c)
	readers := storetest.Open(t, servers.URL(1, "courier_3"))
	awaitSequences(t, readers, last)
	copying := storetest.Open(t, servers.URL(1, "default")+
		"?distributed_foreground_insert=1&max_partitions_per_insert_block=0")
	ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{
		"samples_from": "2026-06-01 00:00:00", "minutes_from": "2025-06-01 00:00:00",
	}))
	for _, statement := range copyStatements(t) {
		must(t, copying.Exec(ctx, statement))
	}
	last = publishJobs(t, b, "late-")
	awaitSequences(t, old, last)
	awaitSequences(t, readers, last)
	first()
	second()

	verifyCluster(t, b, c)
	epochs := selectNumber(t, old, "SELECT count() AS n FROM job_epoch")
	for query, want := range map[string]uint64{
		countSamples: 3 * samples,
		"SELECT uniqExact(event_id) AS n FROM node_sample":                3 * samples,
		"SELECT sum(samples) AS n FROM node_minute":                       3*samples + 1800,
		"SELECT sum(samples) AS n FROM node_hour":                         3*samples + 1800,
		"SELECT count() AS n FROM node_minute WHERE node = 'old'":         60,
		"SELECT sum(epochs) AS n FROM job_run":                            epochs,
		"SELECT uniqExact(job_id) AS n FROM jobs WHERE state != 'queued'": 18,
	} {
		wantNumber(t, readers, want, query)
	}
	for _, table := range schemas.Tables() {
		count := "SELECT count() AS n FROM " + table.Name
		if got, want := selectNumber(t, readers, count), selectNumber(t, old, count); got != want {
			t.Errorf("%s has %d rows in the new tables, want %d", table.Name, got, want)
		}
	}
}

// The schema of a cluster is derived from that of a single server.
func TestSchema_OfACluster(t *testing.T) {
	t.Parallel()
	statements, err := store.Schema("main")
	must(t, err)
	text := strings.Join(statements, ";\n")
	local, readers, _ := strings.Cut(text, "USE courier;\n")
	for _, c := range []struct {
		where, text, want string
		count             int
	}{
		{"shards", local, "ENGINE = Replicated", len(store.TableNames())},
		{"shards", local, "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'", len(store.TableNames())},
		{"shards", local, "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', " +
			"'{replica}', sequence)", 1},
		{"shards", local, " non_replicated_deduplication_window", 0},
		{"shards", local, "MATERIALIZED VIEW", 3},
		{"readers", readers, "ENGINE = Distributed(main, courier_local, ", len(store.TableNames())},
		{"readers", readers, "Distributed(main, courier_local, job_epoch, cityHash64(job_id))", 1},
		{"readers", readers, "Distributed(main, courier_local, node_hour, cityHash64(node))", 1},
		{"readers", readers, "CREATE OR REPLACE VIEW log_position AS", 1},
		{"readers", readers, "MATERIALIZED VIEW", 0},
		{"readers", readers, "MergeTree", 0},
		{"readers", readers, "CREATE VIEW IF NOT EXISTS jobs ", 1},
	} {
		if got := strings.Count(c.text, c.want); got != c.count {
			t.Errorf("the statements for %s have %q %d times, want %d", c.where, c.want, got, c.count)
		}
	}
	if _, err := store.Schema("no; such"); err == nil {
		t.Error("Schema accepts an invalid cluster name, want an error")
	}

	// The engine of a test has no Keeper for replicated tables, but parses each statement.
	d := storetest.New(t)
	for _, s := range statements {
		if tree, err := store.Values[string](t.Context(), d, "EXPLAIN AST "+s); err != nil || len(tree) == 0 {
			t.Errorf("%v:\n%s", err, s)
		}
	}
}

// writeShards writes a batch as the writers of all shards do.
func writeShards(t testing.TB, c *store.Cluster, whole bus.Batch) {
	t.Helper()
	for i, d := range c.Databases() {
		part := whole
		part.Records = nil
		for _, r := range whole.Records {
			if store.ShardOf(c.ShardMap(), strings.Split(r.Subject, ".")[1]) == i {
				part.Records = append(part.Records, r)
			}
		}
		write(t, newStore(t, nil, d), part)
	}
}

// The cookbook has the same answers on a cluster as on one server.
func TestCluster_AnswersTheCookbook(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers := cluster.Start(t, 1, 1)
	c := openCluster(t, bustest.New(t), servers)
	must(t, c.Migrate(t.Context()))
	for _, d := range c.Databases() {
		keepForever(t, d)
	}
	jobs, samples, regressors := twoWeeks()
	writeShards(t, c, batch(schemas.StreamJob, 1, jobs...))
	writeShards(t, c, batch(schemas.StreamNode, 1, samples...))
	writeShards(t, c, batch(schemas.StreamRegressor, 1, regressors...))
	for _, d := range c.Databases() {
		if n := selectNumber(t, d, "SELECT count() AS n FROM job_epoch"); n == 0 {
			t.Errorf("%s has no epochs", d.Address())
		}
	}

	asked := 0
	for file, page := range readCookbook(t) {
		for _, r := range recipe.FindAllStringSubmatch(page, -1) {
			got := curl(t, servers.HTTPURL(t, asked%2, "courier"), r[2])
			if diff := cmp.Diff(r[3], got); diff != "" {
				t.Errorf("%s: %s (-one server +cluster):\n%s", file, r[1], diff)
			}
			asked++
		}
	}
	t.Logf("compared %d answers", asked)
}

// The history has the events of all shards in the order of the log, up to the position of the shard
// that is behind.
func TestCluster_ReturnsTheHistory(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 1, 1)
	c := openCluster(t, bustest.New(t), servers)
	must(t, c.Migrate(t.Context()))
	s := newTestLog()
	for _, job := range []string{"alpha", "beta", "gamma", "delta"} {
		s.job(job, time.Minute, schemas.EventFinished)
	}
	whole := batch(schemas.StreamJob, 1, s.events...)
	readers := storetest.Open(t, servers.URL(1, "courier"))
	write(t, newStore(t, nil, c.Databases()[0]), bus.Batch{
		Stream: whole.Stream, First: whole.First, Last: whole.Last, Token: whole.Token,
	})
	if got := history(t, readers, time.Time{}); len(got) > 0 {
		t.Errorf("%d events although a shard has written nothing", len(got))
	}
	writeShards(t, c, whole)
	want := eventsSince(s.events, time.Time{})
	got := history(t, readers, time.Time{})
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("history of a cluster (-want +got):\n%s", diff)
	}
}
