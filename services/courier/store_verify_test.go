package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"courier/schemas"
	"courier/store"
)

// Rows of a running courier all are deleted and duplicated. It rebuilds its tables.
func TestStoreVerify_FindsDifferencesThatARebuildRemoves(t *testing.T) {
	t.Parallel()
	library := testLibrary(t)
	if library == "" {
		t.Skip("no ClickHouse engine")
	}
	var dir string
	l := startAll(t, func(f *localFlags) {
		f.Engine, f.EngineLibrary = "auto", library
		dir = f.Data
	})
	await(t, "samples in their table", func() bool {
		d := l.Database()
		if d == nil {
			return false
		}
		position, err := d.Position(within(t, oneTry), schemas.StreamNode)
		return err == nil && position >= 10
	})
	command := func(want int, verb string, args ...string) string {
		t.Helper()
		out, err := courier(t, append([]string{"store", verb, "--data", dir}, args...)...)
		if got := exitCode(err); got != want {
			t.Fatalf("courier store %s %s = %v with code %d, want %d\n%s",
				verb, strings.Join(args, " "), err, got, want, out)
		}
		return out
	}
	contains := func(text string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	contains(command(0, "verify"), "node_sample", "node_minute", "Log, tables and roll-ups agree.")

	d := l.Database()
	for _, statement := range []string{
		"DELETE FROM node_sample WHERE sequence IN (3, 4)",
		"INSERT INTO node_sample SELECT * FROM node_sample WHERE sequence = 5 SETTINGS" +
			" insert_deduplicate = 0",
	} {
		if err := d.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	contains(command(exitNotMet, "verify"), ": 2 missing, 1 duplicated, 0 only in the table",
		"courier store rebuild NODE")
	contains(command(0, "rebuild", "NODE"), "Rebuilt from the log in ",
		"Log, tables and roll-ups agree.")
	var r struct {
		OK      bool `json:"ok"`
		Streams []struct {
			Stream string `json:"stream"`
			Tables []struct {
				Hours []struct {
					LogEvents uint64 `json:"log_events"`
				} `json:"hours"`
			} `json:"tables"`
		} `json:"streams"`
	}
	text := command(0, "verify", "-o", "json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || !r.OK ||
		len(r.Streams) != len(schemas.StoreDurables()) {
		t.Errorf("verify -o json: error %v, want all streams and OK\n%s", err, text)
	}
	for _, s := range r.Streams {
		if s.Stream == schemas.StreamNode && s.Tables[0].Hours[0].LogEvents == 0 {
			t.Errorf("first hour of samples = %+v, want events", s.Tables[0].Hours[0])
		}
	}
}

// A URL without a user connects as the default user, from which the embedded engine accepts nothing.
func TestStoreVerify_NamesTheUserOfTheEmbeddedEngine(t *testing.T) {
	t.Parallel()
	library := testLibrary(t)
	if library == "" {
		t.Skip("no ClickHouse engine")
	}
	l := startAll(t, func(f *localFlags) { f.Engine, f.EngineLibrary = "auto", library })
	await(t, "the engine", func() bool { return l.Endpoints().ClickHouseNativeURL != "" })

	e := l.Endpoints()
	_, err := courier(t, "store", "verify", "--nats-url", e.NATSURL, "--clickhouse-url", e.ClickHouseNativeURL)
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "the user courier") ||
		!strings.Contains(err.Error(), "--data") {
		t.Errorf("courier store verify without a user = %v, want the user and --data", err)
	}
}
