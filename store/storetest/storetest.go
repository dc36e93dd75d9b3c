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
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"courier/store"
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
	return NewIn(t, Protocols(t)[0])
}

// NewIn is New with one of Protocols.
func NewIn(t testing.TB, protocol string) *store.Database {
	t.Helper()
	d := Open(t, Address(t, protocol))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, d.Migrate(ctx))
	return d
}

// Open opens the database at an address until the test ends.
func Open(t testing.TB, address string) *store.Database {
	t.Helper()
	o := store.Options{URL: address, Timeout: patience}
	d, err := store.Open(t.Context(), o, slog.New(slog.DiscardHandler), nil)
	must(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Protocols returns the URL schemes of the server, such as "clickhouse" and "http".
func Protocols(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, server := range servers(t) {
		scheme, _, _ := strings.Cut(server, "://")
		all = append(all, scheme)
	}
	return all
}

// Address returns the URL, with one of Protocols, of a database that does not exist yet. It is
// dropped when the test ends.
func Address(t testing.TB, protocol string) string {
	t.Helper()
	name := "courier_" + strings.ToLower(rand.Text()[:12])
	for _, server := range servers(t) {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal("the address of the server is invalid")
		}
		if u.Scheme == protocol {
			u.Path = "/default"
			server := u.String()
			t.Cleanup(func() { command(t, server, "DROP DATABASE IF EXISTS "+name+" SYNC") })
			u.Path = "/" + name
			return u.String()
		}
	}
	t.Fatalf("the server has no address for the protocol %s", protocol)
	return ""
}

func servers(t testing.TB) []string {
	t.Helper()
	if named := os.Getenv(ServerVariable); named != "" {
		return strings.Fields(named)
	}
	return addresses(t, Engine(t))
}

// Empty is Address with an existing, empty database.
func Empty(t testing.TB, protocol string) string {
	t.Helper()
	address := Address(t, protocol)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the address of the server is invalid")
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/default"
	command(t, u.String(), "CREATE DATABASE "+name)
	return address
}

// command runs one statement on a server. It only logs an error, because the test may have
// stopped its server.
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
