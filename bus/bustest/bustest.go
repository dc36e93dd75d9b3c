// Package bustest runs a real JetStream server for a test, in the process and directory of the
// test and without a port unless the test needs one, and waits for events.
package bustest

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
)

const patience = 5 * time.Minute

// Server is a NATS server that a test may stop and restart.
type Server struct {
	dir     string
	port    int
	running *server.Server
}

// NewServer returns a server that runs until the test ends and listens on a free port of the
// loopback address.
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

// Restart starts the server again with the same data and port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	o := server.Options{DataDir: s.dir, Port: s.port, Start: patience}
	ns, err := server.New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.running = ns
	s.port = cmp.Or(s.port, ns.Port())
}

// Stop stops the server and closes its connections.
func (s *Server) Stop() { s.running.Stop() }

// URL returns the server's address.
func (s *Server) URL() string { return s.running.URL() }

// Connect returns a prepared bus over TCP. It is closed when the test ends.
func (s *Server) Connect(t testing.TB) *bus.Bus {
	t.Helper()
	return connect(t, bus.Options{URL: s.URL(), Name: t.Name()})
}

// New returns a prepared bus with its own server, which listens on no port.
func New(t testing.TB) *bus.Bus {
	t.Helper()
	s := start(t, -1)
	return connect(t, bus.Options{InProcess: s.running, Name: t.Name()})
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

// Stored waits until n events in JOB match the subject, and returns them.
func Stored(t testing.TB, b *bus.Bus, subject string, n int) []schemas.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []schemas.Event
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{subject}}
	if err := b.Follow(ctx, o, func(r bus.Record) error {
		if all = append(all, r.Event); len(all) == n {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != n {
		t.Fatalf("%d events of %s, want %d", len(all), subject, n)
	}
	return all
}
