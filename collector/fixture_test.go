package collector_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
)

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

// waitForEvents waits until n events in JOB match the subject, and returns them.
func waitForEvents(t *testing.T, b *bus.Bus, subject string, n int) []schemas.Event {
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

// TestMain lets the test program be the NATS server of a benchmark.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "--nats-server" {
		os.Exit(serveNATS(os.Args[2]))
	}
	os.Exit(m.Run())
}

// serveNATS runs a NATS server until the input ends, and prints its address.
func serveNATS(dir string) (exitCode int) {
	s, err := server.New(server.Options{DataDir: dir}, quiet)
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Stop()
	fmt.Println(s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
