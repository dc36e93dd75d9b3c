package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"courier/store/engine"
	"courier/store/engine/host"
)

// EngineVariable names the engine library that the tests must use. Unset, they
// use one that is on this machine, or are skipped.
const EngineVariable = "COURIER_TEST_ENGINE"

// hostRole is the argument with which a test binary is run again as the host.
const hostRole = "engine-host"

// init makes any test binary that imports this package the engine's host when
// it is run again as one, whether its package has a TestMain or not.
func init() {
	if len(os.Args) > 1 && os.Args[1] == hostRole {
		os.Exit(host.HostMain(os.Args[2:]))
	}
}

// started is an engine that runs for tests.
type started struct {
	endpoint engine.Endpoint
	stop     func() error
}

// shared is the engine of a test binary whose TestMain calls Main.
var shared struct {
	wanted  bool
	once    sync.Once
	engine  *started
	err     error
	skipped atomic.Int64
}

// Main runs the tests of a package, which share one engine, and returns the exit
// status; call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
//
// It stops the engine at the end, and says in one line how many tests were
// skipped for want of one.
func Main(m *testing.M) int {
	shared.wanted = true
	status := m.Run()
	if n := shared.skipped.Load(); n > 0 {
		fmt.Printf("%d tests skipped: no ClickHouse engine here; `courier engine install` or %s turns them on\n", n, EngineVariable)
	}
	if shared.engine != nil {
		if err := shared.engine.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the engine:", err)
			return 1
		}
	}
	return status
}

// Engine returns an engine that lives at least as long as the test: the one that
// the tests of this binary share if its TestMain calls Main, else one of the
// test's own. Without an engine on this machine the test is skipped; one that
// EngineVariable names and that does not start fails it.
func Engine(t testing.TB) engine.Endpoint {
	t.Helper()
	return engineFor(t).endpoint
}

// engineFor is Engine with the means to stop it.
func engineFor(t testing.TB) *started {
	t.Helper()
	if !shared.wanted {
		s, err := startEngine()
		skipOrFail(t, err)
		t.Cleanup(func() {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	shared.once.Do(func() { shared.engine, shared.err = startEngine() })
	skipOrFail(t, shared.err)
	return shared.engine
}

// skipOrFail ends a test for which no engine started.
func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	none := errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnsupported)
	if none && os.Getenv(EngineVariable) == "" {
		shared.skipped.Add(1)
		t.Skip("no ClickHouse engine")
	}
	t.Fatal(err)
}

// addresses are the engine's two URLs with user and password: native and HTTP.
func (s *started) addresses(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, address := range []string{s.endpoint.NativeURL, s.endpoint.HTTPURL} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(s.endpoint.User, s.endpoint.Password)
		all = append(all, u.String())
	}
	return all
}

// startEngine starts an engine in a temporary directory.
func startEngine() (*started, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp("", "courier-engine-*")
	if err != nil {
		return nil, err
	}
	o := engine.Options{
		DataDir:      data,
		Library:      os.Getenv(EngineVariable),
		HostCommand:  []string{program, hostRole},
		MemoryBytes:  1 << 30,
		StartTimeout: patience,
	}
	e, err := engine.New(o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	s := &started{stop: func() error {
		cancel()
		return errors.Join(<-done, os.RemoveAll(data))
	}}
	ready, cancelReady := context.WithTimeout(ctx, patience)
	defer cancelReady()
	if s.endpoint, err = e.Ready(ready); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}
