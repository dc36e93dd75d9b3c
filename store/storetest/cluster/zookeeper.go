package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"courier/store/storetest"
)

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
	must(t, os.WriteFile(filepath.Join(z.dir, "zoo.cfg"), []byte(settings), 0o600))
	z.start(t)
	t.Cleanup(func() { z.end() })
	return z
}

// start starts the process. The servers of the cluster wait for its port.
func (z *ZooKeeper) start(t testing.TB) {
	t.Helper()
	z.process = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(z.libraries, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(z.dir, "zoo.cfg"))
	z.process.Stdout, z.process.Stderr = t.Output(), t.Output()
	z.process.WaitDelay = time.Second
	must(t, z.process.Start())
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
// starts before its ZooKeeper looks for it again after a second instead of a minute.
func (z *ZooKeeper) configuration(server int) string {
	return "<zookeeper><node><host>127.0.0.1</host><port>" + strconv.Itoa(z.port) + "</port></node>" +
		"<session_timeout_ms>6000</session_timeout_ms>" +
		fmt.Sprintf("<sessions_path>/clickhouse/sessions/%d</sessions_path></zookeeper>", server) +
		"<listen_host>127.0.0.1</listen_host><listen_host>" + interserverHost + "</listen_host>" +
		"<background_schedule_pool_size>4</background_schedule_pool_size>" +
		"<background_fetches_pool_size>2</background_fetches_pool_size>" +
		"<background_common_pool_size>2</background_common_pool_size>" +
		"<merge_tree><initialization_retry_period>1</initialization_retry_period></merge_tree>"
}
