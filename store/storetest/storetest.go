// Package storetest creates a database for each test on a real ClickHouse: on the server that
// COURIER_TEST_CLICKHOUSE names, or on an engine. If that server is unreachable, or the library
// that COURIER_TEST_ENGINE names does not start, the test fails. If neither is set and no library
// is installed, the test is skipped.
//
// The tests of a package whose TestMain calls Main share one engine. Otherwise each test starts
// its own, which takes some tenths of a second.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/store"
	"courier/store/engine"
	"courier/store/engine/host"
)

// ServerVariable is the address of a server for the tests instead of an engine, such as
// clickhouse://user:password@host:9000. It may hold several addresses of the same server, one per
// protocol, separated by spaces. The path is ignored.
const ServerVariable = "COURIER_TEST_CLICKHOUSE"

// patience bounds the start of a server, and each statement. It only guards against hanging: on a
// busy machine some statements take half a minute.
const patience = 5 * time.Minute

// New returns a migrated database, which is dropped when the test ends.
func New(t testing.TB) *store.Database {
	t.Helper()
	d := Open(t, Address(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	Must(t, d.Migrate(ctx))
	return d
}

// Open opens the database at an address until the test ends.
func Open(t testing.TB, address string) *store.Database {
	t.Helper()
	o := store.Options{URL: address, Timeout: patience}
	d, err := store.Open(t.Context(), o, slog.New(slog.DiscardHandler), nil)
	Must(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Address returns the URL of a database that does not exist yet. It is dropped when the test ends.
func Address(t testing.TB) string {
	t.Helper()
	u := find(t, false)
	if u == nil {
		t.Fatalf("%s has no address for the native protocol", ServerVariable)
	}
	u.Path = "/default"
	server := u.String()
	name := "courier_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() { command(t, server, "DROP DATABASE IF EXISTS "+name+" SYNC") })
	u.Path = "/" + name
	return u.String()
}

// OverHTTP returns the HTTP URL of a database of Address, for clients such as curl. If the server has no
// known HTTP address, the test is skipped.
func OverHTTP(t testing.TB, address string) string {
	t.Helper()
	u := find(t, true)
	if u == nil {
		t.Skip("the server has no known HTTP address")
	}
	native, err := url.Parse(address)
	Must(t, err)
	u.Path = native.Path
	return u.String()
}

// find returns the server's address for HTTP or the native protocol; nil if it is not known.
func find(t testing.TB, isHTTP bool) *url.URL {
	t.Helper()
	all := strings.Fields(os.Getenv(ServerVariable))
	if len(all) == 0 {
		all = addresses(t, Engine(t))
	}
	for _, address := range all {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal("the address of the server is invalid")
		}
		if strings.HasPrefix(u.Scheme, "http") == isHTTP {
			return u
		}
	}
	return nil
}

// Empty is Address with an existing, empty database.
func Empty(t testing.TB) string {
	t.Helper()
	address := Address(t)
	u, err := url.Parse(address)
	Must(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/default"
	command(t, u.String(), "CREATE DATABASE "+name)
	return address
}

// command runs one statement. It only logs an error: the test may have stopped its server.
func command(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := store.Options{URL: server, Timeout: patience}
	d, err := store.Open(ctx, o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer d.Close()
	if err := d.Exec(ctx, statement); err != nil {
		t.Logf("%s: %v", statement, err)
	}
}

// Must ends the test with an error that is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func addresses(t testing.TB, c engine.Connection) []string {
	t.Helper()
	var all []string
	for _, address := range []string{c.NativeURL, c.HTTPURL} {
		u, err := url.Parse(address)
		Must(t, err)
		u.User = url.UserPassword(c.User, c.Password)
		all = append(all, u.String())
	}
	return all
}
