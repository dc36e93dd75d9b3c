package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"courier/store/engine"
)

// Server is an engine for one test, which may kill it.
type Server struct {
	engine *engine.Engine
	stop   func() error
}

// NewServer starts an engine that runs until the test ends. If no engine is installed, the test
// is skipped.
func NewServer(t testing.TB) *Server {
	t.Helper()
	return NewServerIn(t, t.TempDir())
}

// NewServerIn is NewServer with the data in a directory. The engine keeps its ports when it
// restarts.
func NewServerIn(t testing.TB, dir string) *Server {
	t.Helper()
	return newServer(t, dir, FreePort(t), FreePort(t), hostRole)
}

// NewShardIn is NewServerIn for a server of a cluster: it listens on a given port for the native
// protocol, and may connect to the other servers. The engine reads run/config.d/*.xml and
// run/users.d/*.xml of the directory.
func NewShardIn(t testing.TB, dir string, port int) *Server {
	t.Helper()
	return newServer(t, dir, port, FreePort(t), hostRole, "-connect")
}

// NewReplicaIn is NewShardIn for a server with replicated tables. The other replicas fetch its parts
// from its port for HTTP on a host, which must be its second listen_host.
func NewReplicaIn(t testing.TB, dir string, port, httpPort int, host string) *Server {
	t.Helper()
	interserver := net.JoinHostPort(host, strconv.Itoa(httpPort))
	return newServer(t, dir, port, httpPort, replicaRole, interserver, "-connect")
}

func newServer(t testing.TB, dir string, port, httpPort int, host ...string) *Server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	o := engine.Options{DataDir: dir, HTTPPort: httpPort, TCPPort: port}
	s, err := startServer(log, o, host...)
	skipOrFail(t, err)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func startServer(log *slog.Logger, o engine.Options, host ...string) (*Server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.HostCommand = append([]string{program}, host...)
	o.Library = os.Getenv(EngineVariable)
	o.MemoryBytes = 1 << 30
	o.StartTimeout = patience
	o.MaxRestartDelay = 100 * time.Millisecond
	// Nobody needs the data, and an engine waits five seconds for its open connections, such as those
	// between the servers of a cluster.
	o.StopTimeout = 100 * time.Millisecond
	e, err := engine.New(o, log, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	s := &Server{engine: e, stop: sync.OnceValue(func() error { cancel(); return <-done })}
	if _, err := s.connection(); err != nil {
		_ = s.stop() // it returns the same error
		return nil, err
	}
	return s, nil
}

var usedPorts sync.Map

// FreePort returns a free port of the loopback address, below the range of ports for outgoing
// connections, so that it is still free when a server restarts. It returns no port twice, and none of
// another process that calls it: a port is free until its server listens.
func FreePort(t testing.TB) int {
	t.Helper()
	owner, err := portRange()
	Must(t, err)
	for range 1_000 {
		port := owner.Addr().(*net.TCPAddr).Port + 1 + rand.IntN(portsOfProcess)
		l, err := listen(port)
		if err != nil {
			continue
		}
		_ = l.Close() // it only shows that the port is free
		if _, used := usedPorts.LoadOrStore(port, true); !used {
			return port
		}
	}
	t.Fatal("no free port found")
	return 0
}

const portsOfProcess = 1_000

// portRange returns a listener on the port below those that belong to this process. It listens until
// the process ends, and so owns them.
var portRange = sync.OnceValues(func() (owner net.Listener, err error) {
	for port := 20_000; port < 32_000; port += portsOfProcess + 1 {
		if owner, err = listen(port); err == nil {
			return owner, nil
		}
	}
	return nil, fmt.Errorf("no range of ports from 20000 to 32000 is left for another process: %w", err)
})

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func (s *Server) connection() (engine.Connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.engine.Ready(ctx)
}

func (s *Server) ready(t testing.TB) engine.Connection {
	t.Helper()
	c, err := s.connection()
	Must(t, err)
	return c
}

// Address returns the URL of the engine's default database.
func (s *Server) Address(t testing.TB) string {
	t.Helper()
	return s.ready(t).StoreURL()
}

// Process waits until the engine answers and returns its process.
func (s *Server) Process(t testing.TB) *os.Process {
	t.Helper()
	p, err := os.FindProcess(s.ready(t).PID)
	Must(t, err)
	return p
}

// Kill kills the engine with SIGKILL. It restarts at once with the same data and ports.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	Must(t, s.Process(t).Kill())
}

// Stop ends the engine, if necessary with SIGKILL. It does not restart.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	Must(t, s.stop())
}

// AwaitRestart waits until the engine answers with another process than that of an ID.
func (s *Server) AwaitRestart(t testing.TB, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for s.ready(t).PID == pid {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the engine with process %d was not restarted", pid)
		}
	}
}

// HTTPAddress returns the URL of the engine's HTTP interface, without a user and database.
func (s *Server) HTTPAddress(t testing.TB) string {
	t.Helper()
	return s.ready(t).HTTPURL
}
