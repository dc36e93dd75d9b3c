package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/ClickHouse/clickhouse-go/v2"
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
		if n := selectNumber(t, readers, query); n != want {
			t.Errorf("%s: %d in the new tables, want %d", query, n, want)
		}
	}
	for _, table := range schemas.Tables() {
		count := "SELECT count() AS n FROM " + table.Name
		if got, want := selectNumber(t, readers, count), selectNumber(t, old, count); got != want {
			t.Errorf("%s has %d rows in the new tables, want %d", table.Name, got, want)
		}
	}
}
