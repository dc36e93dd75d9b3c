package main

import (
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store/storetest"
)

// One command creates the database from the log.
func TestStoreRebuild_CreatesTheDatabaseFromTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	address := storetest.Address(t, storetest.Protocols(t)[0])
	server := bustest.NewServer(t)
	b := server.Connect(t)
	for n := range uint64(50) {
		s := &schemas.Sample{
			Stamp: schemas.Stamp{
				EventID: schemas.SampleID("node-a", "boot", n),
				At:      time.Now().UTC(),
			},
			Node:            "node-a",
			BootID:          "boot",
			Number:          n,
			IntervalSeconds: 2,
			Cores:           2,
		}
		if _, err := b.Publish(within(t, patience), s); err != nil {
			t.Fatal(err)
		}
	}
	rebuild := func(streams ...string) (string, error) {
		return courier(t, append([]string{
			"store", "rebuild", "--nats-url", server.URL(), "--clickhouse-url", address,
		}, streams...)...)
	}
	for _, when := range []string{"the first time", "again"} {
		out, err := rebuild()
		if err != nil {
			t.Fatalf("courier store rebuild %s: %v\n%s", when, err, out)
		}
		for _, want := range []string{
			"Rebuilt from the log in ", "Log, tables and roll-ups agree.",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", when, want, out)
			}
		}
	}
	d := storetest.Open(t, address)
	if n := one(t, d, "SELECT sum(samples) AS n FROM node_minute"); n != 50 {
		t.Errorf("the roll-up has %d samples, want 50", n)
	}
	if _, err := rebuild("NOTHING"); err == nil || !strings.Contains(err.Error(), "stream") {
		t.Errorf("courier store rebuild NOTHING = %v, want an error about the stream", err)
	}
}
