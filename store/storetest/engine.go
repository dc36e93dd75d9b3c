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
		o := engine.InstallOptions{Progress: os.Stderr}
		library, err := engine.Install(context.Background(), o)
		if err == nil {
			err = os.Setenv(EngineVariable, library)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "install the engine of the tests:", err)
			os.Exit(1)
		}
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

// shared is the engine of a test binary whose TestMain calls Main.
var shared struct {
	dir     string // "": each test starts its own engine
	once    sync.Once
	server  *Server
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
	dir, err := os.MkdirTemp("", "courier-engine-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.dir = dir
	status := m.Run()
	if n := shared.skipped.Load(); n > 0 {
		fmt.Printf("%d tests skipped: no ClickHouse engine; "+
			"run `courier engine install`, or set %s\n", n, EngineVariable)
	}
	if shared.server != nil {
		err = shared.server.stop()
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "stop the engine:", err)
		return 1
	}
	return status
}

// Engine returns an engine that runs at least until the test ends: the shared one if the TestMain
// of this binary calls Main, otherwise one for this test. If no engine is installed, the test is
// skipped. If the engine of EngineVariable does not start, the test fails.
func Engine(t testing.TB) engine.Connection {
	t.Helper()
	if shared.dir == "" {
		return NewServer(t).ready(t)
	}
	shared.once.Do(func() {
		log := slog.New(slog.DiscardHandler)
		shared.server, shared.err = startServer(log, engine.Options{DataDir: shared.dir}, hostRole)
	})
	skipOrFail(t, shared.err)
	return shared.server.ready(t)
}

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
func addresses(t testing.TB, c engine.Connection) []string {
	t.Helper()
	var all []string
	for _, address := range []string{c.NativeURL, c.HTTPURL} {
		u, err := url.Parse(address)
		must(t, err)
		u.User = url.UserPassword(c.User, c.Password)
		all = append(all, u.String())
	}
	return all
}
