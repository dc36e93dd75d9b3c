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

// EngineVariable is the path of the engine library that the tests must use, or installEngine. If it
// is unset, they use a library that is installed, or are skipped.
const EngineVariable = "COURIER_TEST_ENGINE"

// installEngine is the value of EngineVariable with which the tests install the engine, as courier
// engine install does. No test is skipped then.
const installEngine = "install"

// Arguments that run a test binary as the engine's host; see runReplica.
const (
	hostRole    = "engine-host"
	replicaRole = "replica-host"
)

// init turns any test binary that imports this package into the engine's host if it is run with
// a role, whether its package has a TestMain or not. If wanted, it installs the engine.
func init() {
	if os.Getenv(EngineVariable) == installEngine {
		install()
	}
	if len(os.Args) < 3 {
		return
	}
	switch os.Args[1] {
	case hostRole:
		os.Exit(host.HostMain(os.Args[2:]))
	case replicaRole:
		os.Exit(runReplica(os.Args[2:]))
	}
}

// install installs the engine unless it is installed, and sets EngineVariable to its path.
func install() {
	o := engine.InstallOptions{Progress: os.Stderr}
	library, err := engine.Install(context.Background(), o)
	if err == nil {
		err = os.Setenv(EngineVariable, library.Path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "install the engine of the tests:", err)
		os.Exit(1)
	}
}

// testEngine is a running engine.
type testEngine struct {
	endpoint engine.Connection
	stop     func() error
}

// shared is the engine of a test binary whose TestMain calls Main.
var shared struct {
	enabled bool
	once    sync.Once
	engine  *testEngine
	err     error
	skipped atomic.Int64
}

// Main runs the tests of a package, which share one engine, and returns the exit status. Call it
// from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
//
// At the end it stops the engine, and prints how many tests were skipped because there is none.
func Main(m *testing.M) int {
	shared.enabled = true
	status := m.Run()
	if n := shared.skipped.Load(); n > 0 {
		fmt.Printf("%d tests skipped: no ClickHouse engine; "+
			"run `courier engine install`, or set %s\n", n, EngineVariable)
	}
	if shared.engine != nil {
		if err := shared.engine.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the engine:", err)
			return 1
		}
	}
	return status
}

// Engine returns an engine that runs at least until the test ends: the shared one if the TestMain
// of this binary calls Main, otherwise one for this test. If no engine is installed, the test is
// skipped. If the engine of EngineVariable does not start, the test fails.
func Engine(t testing.TB) engine.Connection {
	t.Helper()
	return engineFor(t).endpoint
}

// engineFor is Engine with a function to stop it.
func engineFor(t testing.TB) *testEngine {
	t.Helper()
	if !shared.enabled {
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

// skipOrFail ends a test if no engine has started.
func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	missing := errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnsupported)
	if missing && os.Getenv(EngineVariable) == "" {
		shared.skipped.Add(1)
		t.Skip("no ClickHouse engine")
	}
	t.Fatal(err)
}

// addresses returns the engine's URLs with user and password: native and HTTP.
func (s *testEngine) addresses(t testing.TB) []string {
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
func startEngine() (*testEngine, error) {
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
		StopTimeout:  stopTimeout,
	}
	e, err := engine.New(o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	s := &testEngine{stop: func() error {
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
