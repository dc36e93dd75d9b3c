package store_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

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
