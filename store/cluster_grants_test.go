package store_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"courier/bus/bustest"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// The users of docker-compose.cluster.yml and of the Kubernetes example have the rights that they
// need: the store writes, repairs and rebuilds the tables, and readers see all rows and no others.
func TestCluster_GrantsOfTheDeploymentSuffice(t *testing.T) {
	t.Parallel()
	var deployed struct {
		Courier []string `xml:"users>courier>grants>query"`
		Reader  []string `xml:"users>reader>grants>query"`
	}
	text, err := os.ReadFile(filepath.Join("..", "deploy", "clickhouse", "cluster-users.xml"))
	must(t, err)
	must(t, xml.Unmarshal(text, &deployed))
	servers := cluster.StartForUsers(t, map[string][]string{
		"writer": deployed.Courier, "guest": deployed.Reader,
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
	}
	stop()
	damaged := storetest.Open(t, servers.URL(1, c.ShardMap().LocalDatabase()))
	must(t, damaged.Exec(t.Context(), "DELETE FROM job_epoch WHERE sequence % 2 = 0"))
	must(t, damaged.Exec(t.Context(), "DELETE FROM job_run WHERE 1"))
	must(t, c.Rebuild(t.Context(), store.RebuildOptions{}))
	verifyCluster(t, b, c)

	replicated := slices.DeleteFunc(slices.Clone(deployed.Courier), func(g string) bool {
		return !strings.HasPrefix(g, "GRANT TABLE ENGINE ON Replicated")
	})
	if len(replicated) != 4 {
		t.Errorf("grants of replicated tables: %q, want four", replicated)
	}
}
