// Package cluster starts a ClickHouse cluster for a test: several real engines on this machine,
// one per shard, which know each other as the cluster "main". Only those of StartReplicated have a
// ZooKeeper, and therefore replicated tables; other shards may have several servers nevertheless.
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
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/store/storetest"
)

// Name is the name of the cluster in the configuration of its servers.
const Name = "main"

// interserverHost is the address at which replicas fetch parts from each other.
const interserverHost = "127.0.0.2"

const user = "cluster"

// Servers are the servers of a running cluster.
type Servers struct {
	shards    []*Shard // by shard, then by replica
	replicas  int      // servers of each shard
	password  string
	ZooKeeper *ZooKeeper          // nil: the tables are not replicated
	users     map[string][]string // grants by name
	clusters  []remoteCluster     // in the configuration of all servers
}

type remoteCluster struct {
	name    string
	weights []int
}

// Shard is one server of a cluster.
type Shard struct {
	dir         string
	port        int // of the native protocol
	replicaPort int // of HTTP, also for other replicas; 0: none
	server      *storetest.Server
	edited      string // configuration before the last Edit
}

// Long skips a test that takes half a minute or more on a busy machine, and that .ci/run runs.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("COURIER_TEST_CLUSTERS") == "" {
		t.Skip("takes long; set COURIER_TEST_CLUSTERS")
	}
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
	c.set(t, Name, weights)
	return c
}

// StartForUsers is Start with users who have certain grants only.
func StartForUsers(t testing.TB, users map[string][]string, weights ...int) *Servers {
	t.Helper()
	c := &Servers{replicas: 1, password: rand.Text(), users: users}
	c.set(t, Name, weights)
	return c
}

// StartReplicated is StartReplicas with replicated tables. Without Java, the libraries of ZooKeeper
// and the one engine that can replicate, the test is skipped.
func StartReplicated(t testing.TB, replicas int, weights ...int) *Servers {
	t.Helper()
	zookeeper := startZooKeeper(t)
	if err := storetest.CanReplicate(); err != nil {
		t.Skip("REPLICAS WERE NOT TESTED:", err)
	}
	c := &Servers{replicas: replicas, password: rand.Text(), ZooKeeper: zookeeper}
	c.set(t, Name, weights)
	return c
}

// set sets the shards of a cluster, and starts the servers that they need beyond those that run. The
// configuration takes effect when a server starts.
func (c *Servers) set(t testing.TB, name string, weights []int) {
	t.Helper()
	c.clusters = slices.DeleteFunc(c.clusters, func(r remoteCluster) bool { return r.name == name })
	c.clusters = append(c.clusters, remoteCluster{name, weights})
	running := len(c.shards)
	for range max(0, c.replicas*len(weights)-running) {
		s := &Shard{dir: t.TempDir(), port: storetest.FreePort(t)}
		if c.ZooKeeper != nil {
			s.replicaPort = storetest.FreePort(t)
		}
		c.shards = append(c.shards, s)
	}
	c.configure(t)
	for _, s := range c.shards[running:] {
		s.start(t)
	}
}

func (s *Shard) start(t testing.TB) {
	t.Helper()
	if s.replicaPort > 0 {
		s.server = storetest.NewReplicaIn(t, s.dir, s.port, s.replicaPort, interserverHost)
		return
	}
	s.server = storetest.NewShardIn(t, s.dir, s.port)
}

// Size returns the number of servers.
func (c *Servers) Size() int { return len(c.shards) }

// URL returns the address of a database on a server, counted from 0, with a user that may do
// everything. The database need not exist.
func (c *Servers) URL(server int, database string) string {
	return fmt.Sprintf("clickhouse://%s:%s@%s/%s",
		user, c.password, c.shards[server].address(), database)
}

// URLOf is URL for a user of StartForUsers.
func (c *Servers) URLOf(name string, server int, database string) string {
	return strings.Replace(c.URL(server, database), user+":", name+":", 1)
}

// HTTPURL is URL for the HTTP interface.
func (c *Servers) HTTPURL(t testing.TB, server int, database string) string {
	t.Helper()
	address := strings.TrimPrefix(c.shards[server].server.HTTPAddress(t), "http://")
	return fmt.Sprintf("http://%s:%s@%s/%s", user, c.password, address, database)
}

// Server returns a server, counted from 0.
func (c *Servers) Server(server int) *storetest.Server { return c.shards[server].server }

// Restart starts a stopped server with the same data and the same port for the native protocol.
func (c *Servers) Restart(t testing.TB, server int) {
	t.Helper()
	c.shards[server].start(t)
}

// Replace starts a stopped server with an empty disk.
func (c *Servers) Replace(t testing.TB, server int) {
	t.Helper()
	storetest.Must(t, os.RemoveAll(filepath.Join(c.shards[server].dir, "store")))
	c.Restart(t, server)
}

// Configure sets the shards of a cluster, which may be another one than Name, to one per weight, and
// restarts all servers. It starts servers if there are more weights than servers.
func (c *Servers) Configure(t testing.TB, name string, weights ...int) {
	t.Helper()
	running := slices.Clone(c.shards)
	c.set(t, name, weights)
	for _, s := range running {
		s.restart(t)
	}
}

// Edit replaces text in the configuration of one server, as an administrator who makes a mistake,
// and restarts it.
func (c *Servers) Edit(t testing.TB, server int, before, after string) {
	t.Helper()
	s := c.shards[server]
	text, err := os.ReadFile(s.path("config.d"))
	storetest.Must(t, err)
	if !strings.Contains(string(text), before) {
		t.Fatalf("the configuration of server %d has no %q", server, before)
	}
	s.edited = string(text)
	s.write(t, "config.d", strings.ReplaceAll(s.edited, before, after))
	s.restart(t)
}

// Undo restores the configuration of a server before the last Edit, and restarts it.
func (c *Servers) Undo(t testing.TB, server int) {
	t.Helper()
	s := c.shards[server]
	s.write(t, "config.d", s.edited)
	s.restart(t)
}

func (s *Shard) restart(t testing.TB) {
	t.Helper()
	before := s.server.Process(t).Pid
	s.server.Kill(t)
	s.server.AwaitRestart(t, before)
}

func (c *Servers) remoteServers() string {
	var remote strings.Builder
	for _, r := range c.clusters {
		fmt.Fprintf(&remote, "<%s>", r.name)
		for i, weight := range r.weights {
			fmt.Fprintf(&remote, "<shard><weight>%d</weight>"+
				"<internal_replication>true</internal_replication>", weight)
			for _, s := range c.shards[i*c.replicas : (i+1)*c.replicas] {
				fmt.Fprintf(&remote, "<replica><host>127.0.0.1</host><port>%d</port>"+
					"<user>%s</user><password>%s</password></replica>", s.port, user, c.password)
			}
			remote.WriteString("</shard>")
		}
		fmt.Fprintf(&remote, "</%s>", r.name)
	}
	return remote.String()
}

func (c *Servers) configure(t testing.TB) {
	t.Helper()
	for i, s := range c.shards {
		replicated := ""
		if c.ZooKeeper != nil {
			replicated = c.ZooKeeper.configuration(i)
		}
		s.write(t, "config.d", fmt.Sprintf("<clickhouse><macros><shard>%d</shard>"+
			"<replica>%d</replica></macros><remote_servers>%s</remote_servers>"+
			"<backups><allowed_path>%s</allowed_path></backups>%s</clickhouse>",
			i/c.replicas+1, i%c.replicas+1, c.remoteServers(),
			filepath.Join(s.dir, "store", "backups"), replicated))
		var users strings.Builder
		for name, grants := range c.users {
			fmt.Fprintf(&users, "<%s><password>%s</password><networks><ip>127.0.0.1</ip></networks>"+
				"<profile>default</profile><quota>default</quota><grants><query>%s</query></grants></%[1]s>",
				name, c.password, strings.Join(grants, "</query><query>"))
		}
		s.write(t, "users.d", fmt.Sprintf("<clickhouse><profiles><default>"+
			"<distributed_product_mode>global</distributed_product_mode></default></profiles>"+
			"<users><%s><password>%s</password>"+
			"<networks><ip>127.0.0.1</ip></networks><profile>default</profile>"+
			"<quota>default</quota></%[1]s>%[3]s</users></clickhouse>", user, c.password, users.String()))
	}
}

func (s *Shard) write(t testing.TB, dir, text string) {
	t.Helper()
	path := s.path(dir)
	storetest.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	storetest.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *Shard) path(dir string) string {
	return filepath.Join(s.dir, "run", dir, "cluster.xml")
}

func (s *Shard) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// ZooKeeperVariable is the directory with the libraries of ZooKeeper, from zookeeper/pom.xml.
const ZooKeeperVariable = "COURIER_TEST_ZOOKEEPER"

// ZooKeeper is a running ZooKeeper of one server.
type ZooKeeper struct {
	dir, libraries string
	port           int
	process        *exec.Cmd
}

// startZooKeeper starts a ZooKeeper that runs until the test ends. Without Java or the libraries,
// the test is skipped.
func startZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	z := &ZooKeeper{
		dir:       t.TempDir(),
		libraries: os.Getenv(ZooKeeperVariable),
		port:      storetest.FreePort(t),
	}
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("REPLICAS WERE NOT TESTED: there is no Java for ZooKeeper")
	}
	jars, err := filepath.Glob(filepath.Join(z.libraries, "zookeeper-[0-9]*.jar"))
	if err != nil || len(jars) == 0 {
		t.Skipf("REPLICAS WERE NOT TESTED: %s names no directory with the libraries of "+
			"store/storetest/cluster/zookeeper/pom.xml", ZooKeeperVariable)
	}
	settings := fmt.Sprintf("tickTime=500\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\n"+
		"clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n", z.dir, z.port)
	storetest.Must(t, os.WriteFile(filepath.Join(z.dir, "zoo.cfg"), []byte(settings), 0o600))
	z.start(t)
	t.Cleanup(func() { z.end() })
	return z
}

func (z *ZooKeeper) start(t testing.TB) {
	t.Helper()
	z.process = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(z.libraries, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(z.dir, "zoo.cfg"))
	z.process.Stdout, z.process.Stderr = t.Output(), t.Output()
	z.process.WaitDelay = time.Second
	storetest.Must(t, z.process.Start())
}

func (z *ZooKeeper) end() {
	_ = z.process.Process.Kill() // it may have ended
	_ = z.process.Wait()         // it was killed
}

// Kill kills ZooKeeper with SIGKILL and starts it again with the same data and port.
func (z *ZooKeeper) Kill(t testing.TB) {
	t.Helper()
	z.end()
	z.start(t)
}

// configuration is the part of a server's configuration for replicated tables. The servers have the
// same (empty) UUID, by which they would end each other's sessions in a common path. A server that
// starts before its ZooKeeper, or loses it, looks for it again after a second instead of a minute.
func (z *ZooKeeper) configuration(server int) string {
	return "<zookeeper><node><host>127.0.0.1</host><port>" + strconv.Itoa(z.port) + "</port></node>" +
		"<session_timeout_ms>6000</session_timeout_ms>" +
		fmt.Sprintf("<sessions_path>/clickhouse/sessions/%d</sessions_path></zookeeper>", server) +
		"<listen_host>127.0.0.1</listen_host><listen_host>" + interserverHost + "</listen_host>" +
		"<background_schedule_pool_size>4</background_schedule_pool_size>" +
		"<background_fetches_pool_size>2</background_fetches_pool_size>" +
		"<background_common_pool_size>2</background_common_pool_size>" +
		"<merge_tree><initialization_retry_period>1</initialization_retry_period>" +
		"<zookeeper_session_expiration_check_period>1</zookeeper_session_expiration_check_period></merge_tree>"
}
