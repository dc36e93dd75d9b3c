package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"courier/services/local"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"
)

// Each script runs the program with real command lines. The scripts have these additional commands:
//   - cluster DIR waits until advisor and trainer of a courier all in DIR answer, and sets
//     COURIER_NATS_URL and HTTP_URL to its addresses.
//   - until PATTERN COMMAND… repeats a command until its output matches.
//   - nats publish SUBJECT FILE and nats delete STREAM change the log as other NATS tools could.
//
// The condition long holds if COURIER_TEST_LONG is set.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USER", "ada")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return os.Getenv(testLongVariable) != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster": awaitCluster, "until": awaitOutput, "nats": natsTool,
		},
	})
}

func natsTool(ts *testscript.TestScript, _ bool, args []string) {
	nc, err := nats.Connect(ts.Getenv("COURIER_NATS_URL"))
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case len(args) == 3 && args[0] == "publish":
		_, err = js.Publish(ctx, args[1], []byte(ts.ReadFile(args[2])))
	case len(args) == 2 && args[0] == "delete":
		err = js.DeleteStream(ctx, args[1])
	default:
		ts.Fatalf("usage: nats publish SUBJECT FILE, nats delete STREAM")
	}
	ts.Check(err)
}

func awaitCluster(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: cluster DIR")
	}
	awaitScript(ts, "the cluster in "+args[0], func() bool {
		e, err := local.ReadEndpoints(ts.MkAbs(args[0]))
		if err != nil {
			return false
		}
		ts.Setenv("COURIER_NATS_URL", e.NATSURL)
		ts.Setenv("HTTP_URL", e.HTTPURL)
		return ts.Exec("courier", "jobs") == nil && ts.Exec("courier", "regressor", "list") == nil
	})
}

func awaitOutput(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	awaitScript(ts, args[0], func() bool {
		_ = ts.Exec(args[1], args[2:]...) // The output counts, not the exit status.
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// awaitScript waits for a condition.
func awaitScript(ts *testscript.TestScript, what string, ok func() bool) {
	tick := time.NewTicker(200 * time.Millisecond) // each look runs the program
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("timeout waiting for %s", what)
		}
	}
}
