// Package cluster starts a ClickHouse cluster for a test: several real engines on this machine,
// one per shard, which know each other as the cluster "main". They have no Keeper, and therefore no
// replicated tables; a shard may have several servers nevertheless.
//
// A test may kill a shard, which restarts with its data and port, and change the cluster's shards
// and weights as an administrator does: in the configuration of all servers. If no engine is
// installed, the test is skipped.
package cluster

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/store/storetest"
)

// Name is the name of the cluster in the configuration of its servers.
const Name = "main"

// user may do everything on each server, and is used between the servers.
const user = "cluster"

// Servers are the servers of a running cluster.
type Servers struct {
	shards   []*Shard // by shard, then by replica
	replicas int      // servers of each shard
	password string
}

// Shard is one server of a cluster.
type Shard struct {
	dir    string
	port   int // of the native protocol
	server *storetest.Server
}

// Start starts a cluster with a shard for each weight. It runs until the test ends.
func Start(t testing.TB, weights ...int) *Servers {
	t.Helper()
	return StartReplicas(t, 1, weights...)
}

// StartReplicas is Start with several servers for each shard. They do not replicate their tables.
func StartReplicas(t testing.TB, replicas int, weights ...int) *Servers {
	t.Helper()
	c := &Servers{replicas: replicas, password: rand.Text()}
	for range replicas * len(weights) {
		c.shards = append(c.shards, &Shard{dir: t.TempDir(), port: storetest.FreePort(t)})
	}
	c.configure(t, weights)
	for _, s := range c.shards {
		s.server = storetest.NewShardIn(t, s.dir, s.port)
	}
	return c
}

// Size returns the number of servers.
func (c *Servers) Size() int { return len(c.shards) }

// URL returns the address of a database on a server, counted from 0, with a user that may do
// everything. The database need not exist.
func (c *Servers) URL(server int, database string) string {
	return fmt.Sprintf("clickhouse://%s:%s@%s/%s",
		user, c.password, c.shards[server].address(), database)
}

// HTTPURL is URL for the HTTP interface.
func (c *Servers) HTTPURL(t testing.TB, server int, database string) string {
	t.Helper()
	address := strings.TrimPrefix(c.shards[server].server.HTTPAddress(t), "http://")
	return fmt.Sprintf("http://%s:%s@%s/%s", user, c.password, address, database)
}

// Server returns a server, counted from 0.
func (c *Servers) Server(server int) *storetest.Server { return c.shards[server].server }

// Kill kills a server with SIGKILL. It restarts at once with the same data and ports.
func (c *Servers) Kill(t testing.TB, server int) {
	t.Helper()
	c.shards[server].server.Kill(t)
}

// Stop ends a server until Restart.
func (c *Servers) Stop(t testing.TB, server int) {
	t.Helper()
	c.shards[server].server.Stop(t)
}

// Restart starts a stopped server with the same data and the same port for the native protocol.
func (c *Servers) Restart(t testing.TB, server int) {
	t.Helper()
	s := c.shards[server]
	s.server = storetest.NewShardIn(t, s.dir, s.port)
}

// Reconfigure changes the shards of the cluster to one per weight, and restarts all servers. It
// starts servers if there are more weights than servers. Servers without a weight keep running
// outside of the cluster, as those that an administrator has yet to empty.
func (c *Servers) Reconfigure(t testing.TB, weights ...int) {
	t.Helper()
	running := len(c.shards)
	for range max(0, c.replicas*len(weights)-running) {
		c.shards = append(c.shards, &Shard{dir: t.TempDir(), port: storetest.FreePort(t)})
	}
	c.configure(t, weights)
	for i, s := range c.shards {
		if i >= running {
			s.server = storetest.NewShardIn(t, s.dir, s.port)
			continue
		}
		before := s.server.Process(t).Pid
		s.server.Kill(t)
		s.server.AwaitRestart(t, before)
	}
}

// configure writes the configuration of all servers. It takes effect when they start.
func (c *Servers) configure(t testing.TB, weights []int) {
	t.Helper()
	var remote strings.Builder
	for i, weight := range weights {
		fmt.Fprintf(&remote, "<shard><weight>%d</weight>"+
			"<internal_replication>true</internal_replication>", weight)
		for _, s := range c.shards[i*c.replicas : (i+1)*c.replicas] {
			fmt.Fprintf(&remote, "<replica><host>127.0.0.1</host><port>%d</port>"+
				"<user>%s</user><password>%s</password></replica>", s.port, user, c.password)
		}
		remote.WriteString("</shard>")
	}
	for i, s := range c.shards {
		s.write(t, "config.d", fmt.Sprintf("<clickhouse><macros><shard>%d</shard>"+
			"<replica>%d</replica></macros><remote_servers><%s>%s</%[3]s></remote_servers>"+
			"<backups><allowed_path>%s</allowed_path></backups></clickhouse>",
			i/c.replicas+1, i%c.replicas+1, Name, remote.String(), filepath.Join(s.dir, "backups")))
		s.write(t, "users.d", fmt.Sprintf("<clickhouse><profiles><default>"+
			"<distributed_product_mode>global</distributed_product_mode></default></profiles>"+
			"<users><%s><password>%s</password>"+
			"<networks><ip>127.0.0.1</ip></networks><profile>default</profile>"+
			"<quota>default</quota></%[1]s></users></clickhouse>", user, c.password))
	}
}

// write writes a file that ClickHouse merges into its configuration.
func (s *Shard) write(t testing.TB, dir, text string) {
	t.Helper()
	path := filepath.Join(s.dir, "run", dir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "cluster.xml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *Shard) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }
