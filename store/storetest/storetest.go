// Package storetest gives each test a database of its own on a real ClickHouse:
// on the server that COURIER_TEST_CLICKHOUSE names, else on an engine. A named
// server that cannot be reached fails the test, and so does a library that
// COURIER_TEST_ENGINE names and that does not start; without a server and
// without a library the test is skipped.
//
// A package whose TestMain calls Main shares one engine between its tests;
// elsewhere each test that needs one gets its own, which takes some tenths of a
// second.
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

// ServerVariable names the server that the tests use instead of an engine, such
// as clickhouse://user:password@host:9000; several addresses of the same server,
// one for each protocol, are separated by blanks. The path is ignored.
const ServerVariable = "COURIER_TEST_CLICKHOUSE"

// patience is how long a test waits for a server, and for each of its statements. It only guards
// against hanging: a machine without a moment to spare takes half a minute for some.
const patience = 5 * time.Minute

// New returns a migrated database that lives as long as the test.
func New(t testing.TB) *store.Database {
	t.Helper()
	return NewIn(t, Protocols(t)[0])
}

// NewIn is New in one of Protocols.
func NewIn(t testing.TB, protocol string) *store.Database {
	t.Helper()
	d := Open(t, Address(t, protocol))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return d
}

// Open opens the database at an address until the test ends.
func Open(t testing.TB, address string) *store.Database {
	t.Helper()
	o := store.Options{URL: address, Timeout: patience}
	d, err := store.Open(t.Context(), o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Protocols returns the schemes in which the server can be reached, such as
// "clickhouse" and "http".
func Protocols(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, server := range servers(t) {
		scheme, _, _ := strings.Cut(server, "://")
		all = append(all, scheme)
	}
	return all
}

// Address returns the URL, in one of Protocols, of a database that does not exist
// yet and is dropped when the test ends.
func Address(t testing.TB, protocol string) string {
	t.Helper()
	name := "courier_" + strings.ToLower(rand.Text()[:12])
	for _, server := range servers(t) {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal("the server's address cannot be read")
		}
		if u.Scheme == protocol {
			u.Path = "/default"
			server := u.String()
			t.Cleanup(func() { command(t, server, "DROP DATABASE IF EXISTS "+name+" SYNC") })
			u.Path = "/" + name
			return u.String()
		}
	}
	t.Fatalf("the server does not speak %s", protocol)
	return ""
}

// servers returns the addresses of the server, one for each protocol.
func servers(t testing.TB) []string {
	t.Helper()
	if named := os.Getenv(ServerVariable); named != "" {
		return strings.Fields(named)
	}
	return engineFor(t).addresses(t)
}

// Empty is Address of a database that exists and holds nothing.
func Empty(t testing.TB, protocol string) string {
	t.Helper()
	address := Address(t, protocol)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the server's address cannot be read")
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/default"
	command(t, u.String(), "CREATE DATABASE "+name)
	return address
}

// command runs one statement on a server. It only logs what fails, because a test
// may have stopped its server; what follows needs it or not.
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
