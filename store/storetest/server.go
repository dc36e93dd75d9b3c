package storetest

import (
	"context"
	"log/slog"
	"os"
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
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{DataDir: t.TempDir(), Library: os.Getenv(EngineVariable), HostCommand: []string{program, hostRole},
		MemoryBytes: 1 << 30, MaxRestartDelay: 100 * time.Millisecond}, slog.New(slog.DiscardHandler), nil)
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

// ready waits until the engine answers.
func (s *Server) ready(t testing.TB) engine.Endpoint {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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

// Kill kills the engine without a warning. It is started again at once, over the
// same data and on the same ports.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	p, err := os.FindProcess(s.ready(t).PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
