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

// Server is an engine of a test's own, which it may kill.
type Server struct{ engine *engine.Engine }

// NewServer starts an engine that runs until the test ends. Without an engine on
// this machine the test is skipped.
func NewServer(t testing.TB) *Server {
	t.Helper()
	return NewServerIn(t, t.TempDir())
}

// NewServerIn is NewServer over the data in a directory. The engine keeps its ports
// when it is started again: FreePort finds them where no client gets its own.
func NewServerIn(t testing.TB, dir string) *Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{
		DataDir:         dir,
		Library:         os.Getenv(EngineVariable),
		HostCommand:     []string{program, hostRole},
		HTTPPort:        FreePort(t),
		TCPPort:         FreePort(t),
		MemoryBytes:     1 << 30,
		StartTimeout:    patience,
		MaxRestartDelay: 100 * time.Millisecond,
	}
	e, err := engine.New(o, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !t.Skipped() {
			t.Error(err)
		}
	})
	s := &Server{engine: e}
	s.ready(t)
	return s
}

// drawn are the ports that FreePort has given to this process.
var drawn sync.Map

// FreePort returns a port of the loopback address that was free just now, below
// those that systems give to clients: a server that is started again finds it free.
// No port is given twice.
func FreePort(t testing.TB) int {
	t.Helper()
	const lowest, highest = 20_000, 30_000
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = l.Close() // it was only looked at
			if _, twice := drawn.LoadOrStore(port, true); !twice {
				return port
			}
		}
	}
	t.Fatal("no port is free")
	return 0
}

// ready waits until the engine answers.
func (s *Server) ready(t testing.TB) engine.Endpoint {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := s.engine.Ready(ctx)
	skipOrFail(t, err)
	return p
}

// Address returns the URL of the engine's own database, which exists.
func (s *Server) Address(t testing.TB) string {
	t.Helper()
	p := s.ready(t)
	return (&started{endpoint: p}).addresses(t)[0] + "/" + p.Database
}

// Process returns the engine's process, once it answers: until it dies.
func (s *Server) Process(t testing.TB) *os.Process {
	t.Helper()
	p, err := os.FindProcess(s.ready(t).PID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Kill kills the engine without a warning. It is started again at once, over the
// same data and on the same ports.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.Process(t).Kill(); err != nil {
		t.Fatal(err)
	}
}
