package store_test

import (
	"fmt"
	"maps"
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

// again are the settings to insert rows a second time. With the sequential consistency of replicas, a
// statement would not find the rows that a repair has attached, and damage nothing.
const again = " SETTINGS insert_deduplicate = 0, select_sequential_consistency = 0"

// clusterDamages damage the tables of one shard.
var clusterDamages = map[string]string{
	"rows are lost":    "DELETE FROM node_sample WHERE cityHash64(event_id, %d) %% 7 = 0",
	"epochs are lost":  "DELETE FROM job_epoch WHERE cityHash64(event_id, %d) %% 2 = 0",
	"a table is empty": "TRUNCATE TABLE job_started /* %d */",
	"rows are duplicated": "INSERT INTO node_sample SELECT * FROM node_sample " +
		"WHERE cityHash64(event_id, %d) %% 5 = 0" + again,
	"a roll-up loses rows": "DELETE FROM node_minute WHERE cityHash64(node, minute, %d) %% 2 = 0",
	"a roll-up counts twice": "INSERT INTO node_hour SELECT * FROM node_hour " +
		"WHERE cityHash64(node, %d) >= 0" + again,
}

// A repair restores damaged tables of any shard; a rebuild restores a shard whose databases are
// lost. With COURIER_LONG each damage is done 13 times.
func TestCluster_IsRepaired(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := repairDamages(t, b, servers)
	lost := storetest.Open(t, servers.URL(1, "default"))
	for _, name := range []string{c.ShardMap().LocalDatabase(), "courier"} {
		must(t, lost.Exec(t.Context(), "DROP DATABASE "+name+" SYNC"))
	}
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)
	compare(t, b, storetest.Open(t, servers.URL(1, "courier")))
}

// repairDamages damages the tables of two shards, and repairs each damage.
func repairDamages(t *testing.T, b *bus.Bus, servers *cluster.Servers) *store.Cluster {
	t.Helper()
	c := openCluster(t, b, servers)
	s := newTestLog()
	for n := range 12 {
		s.job(fmt.Sprintf("damaged-%d", n), time.Minute, schemas.EventFinished)
		for i := range uint64(30) {
			s.sample(fmt.Sprintf("damaged-%d", n), i)
		}
	}
	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, publish(t, b, s.events))
	stop()

	random := rand.New(rand.NewPCG(22, 0))
	damages := 0
	rounds := 1
	if os.Getenv("COURIER_LONG") != "" {
		rounds = 13
	}
	for round := range rounds {
		for _, name := range slices.Sorted(maps.Keys(clusterDamages)) {
			statement := fmt.Sprintf(clusterDamages[name], random.Uint32())
			must(t, c.Databases()[random.IntN(2)].Exec(t.Context(), statement))
			r, err := c.Verify(t.Context(), store.VerifyOptions{Repair: true})
			must(t, err)
			if found, left := r.Different(); found == 0 || left > 0 {
				t.Errorf("round %d: %s: %d hours differ, %d after the repair", round, name, found, left)
			}
			damages++
		}
		verifyCluster(t, b, c)
	}
	compare(t, b, readers)
	t.Logf("repaired %d damages", damages)
	return c
}
