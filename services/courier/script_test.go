package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The real command line, a story per file. cluster DIR waits until a courier all
// in DIR answers, and sets COURIER_NATS_URL and HTTP_URL to its addresses.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USER", "ada")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"cluster": awaitCluster},
	})
}

func awaitCluster(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: cluster DIR")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		var e Endpoints
		data, err := os.ReadFile(ts.MkAbs(filepath.Join(args[0], "run", "endpoints.json")))
		if err == nil && json.Unmarshal(data, &e) == nil {
			ts.Setenv("COURIER_NATS_URL", e.NATSURL)
			ts.Setenv("HTTP_URL", e.HTTPURL)
			if ts.Exec("courier", "jobs") == nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("the cluster in %s does not answer", args[0])
		}
	}
}
