package store_test

import (
	"encoding/xml"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// publishJobs publishes jobs and samples, whose keys belong to several shards.
func publishJobs(t testing.TB, b *bus.Bus, prefix string) map[string]uint64 {
	t.Helper()
	s := newTestLog()
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		s.job(prefix+name, time.Minute, schemas.EventFinished)
		for n := range uint64(40) {
			s.sample(prefix+name, n)
		}
	}
	return publish(t, b, s.events)
}

// wantTablesDiffer fails unless an error matches ErrTablesDiffer and cannot be cured by a retry.
func wantTablesDiffer(t *testing.T, action string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrTablesDiffer) || !errors.Is(err, store.ErrRefused) {
		t.Errorf("%s: error %v, want ErrTablesDiffer and ErrRefused", action, err)
	}
}

// A store of a cluster refuses the database of a single server, and leaves no trace. With another
// database it fills the shards from the log, while the store of the single server runs.
func TestCluster_RefusesTheTablesOfASingleServer(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	single := storetest.Open(t, servers.URL(1, "courier"))
	last := publishJobs(t, b, "single-")
	stopSingle := run(t, newStore(t, b, single))
	awaitSequences(t, single, last)

	_, err := tryCluster(t, b, servers)
	wantTablesDiffer(t, "open the cluster", err)
	if maps, _, err := b.ShardMaps(t.Context()); len(maps) > 0 || err != nil {
		t.Errorf("a refused start recorded the shard maps %+v, error %v", maps, err)
	}

	c, err := tryClusterAt(t, b, servers.URL(1, "courier_all"))
	must(t, err)
	defer c.Close()
	stop := run(t, c)
	last = publishJobs(t, b, "cluster-")
	awaitSequences(t, single, last)
	for i := range servers.Size() {
		readers := storetest.Open(t, servers.URL(i, "courier_all"))
		awaitSequences(t, readers, last)
		compare(t, b, readers)
	}
	stop()
	stopSingle()
	verifyCluster(t, b, c)
	compare(t, b, single)
}

// The tables of a single server appear although the shard map is recorded.
func TestCluster_RefusesToMigrateTheTablesOfASingleServer(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, storetest.Open(t, servers.URL(1, "courier")).Migrate(t.Context()))
	wantTablesDiffer(t, "migrate", c.Migrate(t.Context()))
	wantTablesDiffer(t, "run", c.Run(t.Context()))
}

// Nothing that works on a single server's tables writes to those of a cluster, neither with the log
// of the cluster nor with another log.
func TestCluster_IsRefusedByTheStoreOfASingleServer(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	last := publishJobs(t, b, "")
	stop := run(t, c)
	readers := storetest.Open(t, servers.URL(0, "courier"))
	awaitSequences(t, readers, last)
	stop()

	log := slog.New(slog.DiscardHandler)
	local := storetest.Open(t, servers.URL(0, "courier_local"))
	for _, c := range []struct {
		name     string
		bus      *bus.Bus
		database *store.Database
	}{
		{"distributed tables and another log", bustest.New(t), readers},
		{"distributed tables", b, readers},
		{"the rows of a shard", b, local},
	} {
		wantTablesDiffer(t, c.name+": run", newStore(t, c.bus, c.database).Run(t.Context()))
		_, err := store.Verify(t.Context(), c.bus, c.database, store.VerifyOptions{})
		wantTablesDiffer(t, c.name+": verify", err)
		err = store.Rebuild(t.Context(), c.bus, c.database, log, store.RebuildOptions{})
		wantTablesDiffer(t, c.name+": rebuild", err)
	}
	compare(t, b, readers)
	verifyCluster(t, b, c)
}

func deployedGrants(t *testing.T, file, user string) []string {
	t.Helper()
	var deployed struct {
		Users struct {
			All []struct {
				XMLName xml.Name
				Grants  []string `xml:"grants>query"`
			} `xml:",any"`
		} `xml:"users"`
	}
	text, err := os.ReadFile(filepath.Join("..", "deploy", "clickhouse", file))
	must(t, err)
	must(t, xml.Unmarshal(text, &deployed))
	for _, u := range deployed.Users.All {
		if u.XMLName.Local == user {
			return u.Grants
		}
	}
	t.Fatalf("%s has no user %s", file, user)
	return nil
}

// The users of docker-compose.cluster.yml and of the Kubernetes example, and that of the trainer,
// have the rights that they need: the store writes, repairs and rebuilds the tables, and readers see
// all rows and no others.
func TestCluster_GrantsOfTheDeploymentSuffice(t *testing.T) {
	cluster.Long(t)
	t.Parallel()
	writer := deployedGrants(t, "cluster-users.xml", "courier")
	servers := cluster.StartForUsers(t, map[string][]string{
		"writer":  writer,
		"guest":   deployedGrants(t, "cluster-users.xml", "reader"),
		"learner": deployedGrants(t, "trainer.xml", "trainer"),
	}, 1, 1)
	b := bustest.New(t)
	c, err := tryClusterAt(t, b, servers.URLOf("writer", 0, "courier"))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })

	stop := run(t, c)
	last := publishJobs(t, b, "")
	for i := range servers.Size() {
		guest := storetest.Open(t, servers.URLOf("guest", i, "courier"))
		awaitSequences(t, guest, last)
		compare(t, b, guest)
		if err := guest.Exec(t.Context(), "SELECT * FROM system.users"); err == nil {
			t.Error("a reader may list the users")
		}
		readHistory(t, storetest.Open(t, servers.URLOf("learner", i, "courier")))
	}
	stop()
	damaged := storetest.Open(t, servers.URL(1, c.ShardMap().LocalDatabase()))
	must(t, damaged.Exec(t.Context(), "DELETE FROM job_epoch WHERE sequence % 2 = 0"))
	must(t, damaged.Exec(t.Context(), "DELETE FROM job_run WHERE 1"))
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)

	replicated := slices.DeleteFunc(slices.Clone(writer), func(g string) bool {
		return !strings.HasPrefix(g, "GRANT TABLE ENGINE ON Replicated")
	})
	if len(replicated) != 4 {
		t.Errorf("grants of replicated tables: %q, want four", replicated)
	}
}

// readHistory reads the jobs of publishJobs as the trainer does.
func readHistory(t *testing.T, d *store.Database) {
	t.Helper()
	ended := 0
	err := store.NewHistory(d).Events(t.Context(), time.Time{}, func(e schemas.Event) error {
		if _, isEnd := e.(*schemas.Ended); isEnd {
			ended++
		}
		return nil
	})
	if err != nil || ended != 6 {
		t.Errorf("the trainer reads %d ended jobs at %s, want 6: %v", ended, d.Address(), err)
	}
}
