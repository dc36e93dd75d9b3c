package collector_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"courier/bus/server"
)

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

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
