package cluster_test

import (
	"testing"

	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/google/go-cmp/cmp"
)

// member is a server as ClickHouse lists it.
type member struct {
	Shard  uint32 `ch:"shard_num"`
	Weight uint32 `ch:"shard_weight"`
	Local  uint8  `ch:"is_local"`
}

func members(t *testing.T, d *store.Database) (all []member) {
	t.Helper()
	err := d.Query(t.Context(), &all, "SELECT shard_num, shard_weight, is_local FROM system.clusters "+
		"WHERE cluster = 'main' ORDER BY shard_num")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// count returns the rows of a distributed table.
func count(t *testing.T, d *store.Database) uint64 {
	t.Helper()
	var rows []struct {
		N uint64 `ch:"n"`
	}
	if err := d.Query(t.Context(), &rows, "SELECT count() AS n FROM d"); err != nil {
		t.Fatal(err)
	}
	return rows[0].N
}

// Rows of all shards are visible on each, also after one was killed, and a reconfiguration adds a
// server.
func TestCluster_JoinsRealEngines(t *testing.T) {
	c := cluster.Start(t, 1, 3)
	var first *store.Database
	for i := range c.Size() {
		d := storetest.Open(t, c.URL(i, "default"))
		for _, s := range []string{
			"CREATE TABLE l (n UInt64) ENGINE = MergeTree ORDER BY n",
			"CREATE TABLE d AS l ENGINE = Distributed(main, default, l, cityHash64(n))",
			"INSERT INTO l VALUES (1), (2)",
		} {
			if err := d.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if first == nil {
			first = d
		}
	}
	if n := count(t, first); n != 4 {
		t.Errorf("%d rows on two shards, want 4", n)
	}
	if diff := cmp.Diff([]member{{1, 1, 1}, {2, 3, 0}}, members(t, first)); diff != "" {
		t.Errorf("system.clusters (-want +got):\n%s", diff)
	}

	before := c.Server(1).Process(t).Pid
	c.Server(1).Kill(t)
	c.Server(1).AwaitRestart(t, before)
	if n := count(t, first); n != 4 {
		t.Errorf("%d rows after a shard was killed, want 4", n)
	}

	c.Configure(t, cluster.Name, 1, 1, 1)
	first = storetest.Open(t, c.URL(0, "default"))
	if diff := cmp.Diff([]member{{1, 1, 1}, {2, 1, 0}, {3, 1, 0}}, members(t, first)); diff != "" {
		t.Errorf("system.clusters after the change (-want +got):\n%s", diff)
	}
}
