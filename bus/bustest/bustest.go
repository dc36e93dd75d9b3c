// Package bustest gives each test a real JetStream server inside its process,
// in the test's own directory, on no port unless one is asked for.
package bustest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/server"
)

// patience is how long a test waits for its server. It only guards against hanging.
const patience = 5 * time.Minute

// Server is a NATS server that a test may stop and start again.
type Server struct {
	dir  string
	port int
	s    *server.Server
}

// NewServer returns a server that runs until the test ends and listens on a
// free port of the loopback address.
func NewServer(t testing.TB) *Server {
	t.Helper()
	return start(t, 0)
}

func start(t testing.TB, port int) *Server {
	s := &Server{dir: t.TempDir(), port: port}
	s.Restart(t)
	t.Cleanup(s.Stop)
	return s
}

// Restart starts the server again over the same data and the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	ns, err := server.New(server.Options{DataDir: s.dir, Port: s.port, Start: patience}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.s = ns
	if s.port == 0 {
		s.port = ns.Port()
	}
}

// Stop ends the server and closes its connections.
func (s *Server) Stop() { s.s.Stop() }

// URL returns the server's address.
func (s *Server) URL() string { return s.s.URL() }

// Connect returns a prepared bus over TCP that lives as long as the test.
func (s *Server) Connect(t testing.TB) *bus.Bus {
	t.Helper()
	return connect(t, bus.Options{URL: s.URL(), Name: t.Name()})
}

// New returns a prepared bus on a server of its own, without any port.
func New(t testing.TB) *bus.Bus {
	t.Helper()
	s := start(t, -1)
	return connect(t, bus.Options{InProcess: s.s, Name: t.Name()})
}

func connect(t testing.TB, o bus.Options) *bus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, err := bus.Connect(ctx, o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = b.Close(ctx) // the test may have stopped its server
	})
	if err := b.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}
