package store_test

import (
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
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
