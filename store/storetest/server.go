package storetest

import (
	"context"
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
	return startServer(t, dir, FreePort(t), FreePort(t), hostRole)
}

// NewShardIn is NewServerIn for a server of a cluster: it listens on a given port for the native
// protocol, and may connect to the other servers. The engine reads run/config.d/*.xml and
// run/users.d/*.xml of the directory.
func NewShardIn(t testing.TB, dir string, port int) *Server {
	t.Helper()
	return startServer(t, dir, port, FreePort(t), hostRole, "-connect")
}

// NewReplicaIn is NewShardIn for a server with replicated tables. The other replicas fetch its parts
// from an address of its port for HTTP, which must be its second listen_host.
func NewReplicaIn(t testing.TB, dir string, port int, interserver string) *Server {
	t.Helper()
	_, text, err := net.SplitHostPort(interserver)
	if err != nil {
		t.Fatal(err)
	}
	httpPort, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, dir, port, httpPort, replicaRole, interserver, "-connect")
}

// stopTimeout is short, because nobody needs the data: an engine waits five seconds for its open
// connections, such as those between the servers of a cluster.
const stopTimeout = 100 * time.Millisecond

// startServer starts an engine that runs until the test ends.
func startServer(
	t testing.TB, dir string, port, httpPort int, hostArguments ...string,
) *Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{
		DataDir:         dir,
		Library:         os.Getenv(EngineVariable),
		HostCommand:     append([]string{program}, hostArguments...),
		HTTPPort:        httpPort,
		TCPPort:         port,
		MemoryBytes:     1 << 30,
		StartTimeout:    patience,
		StopTimeout:     stopTimeout,
		MaxRestartDelay: 100 * time.Millisecond,
	}
	e, err := engine.New(o, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil && !t.Skipped() {
			t.Error(err)
		}
	})
	s := &Server{engine: e, stop: stop}
	s.ready(t)
	return s
}

// usedPorts are the ports that FreePort has returned in this process.
var usedPorts sync.Map

// FreePort returns a free port of the loopback address, below the range of ports for outgoing
// connections, so that it is still free when a server restarts. It returns no port twice.
func FreePort(t testing.TB) int {
	t.Helper()
	const lowest, highest = 20_000, 30_000
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
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

// ready waits until the engine answers.
func (s *Server) ready(t testing.TB) engine.Connection {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := s.engine.Ready(ctx)
	skipOrFail(t, err)
	return p
}

// Address returns the URL of the engine's default database.
func (s *Server) Address(t testing.TB) string {
	t.Helper()
	p := s.ready(t)
	return (&testEngine{endpoint: p}).addresses(t)[0] + "/" + p.Database
}

// Process waits until the engine answers and returns its process.
func (s *Server) Process(t testing.TB) *os.Process {
	t.Helper()
	p, err := os.FindProcess(s.ready(t).PID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Kill kills the engine with SIGKILL. It restarts at once with the same data and ports.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.Process(t).Kill(); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the engine, if necessary with SIGKILL. It does not restart.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
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
