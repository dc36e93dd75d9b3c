//go:build linux && amd64 && !noengine

package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"courier/store/engine"
)

// superviseAlone runs an Engine, prints its endpoint and never returns.
func superviseAlone(library, data string) int {
	program, err := os.Executable()
	if err != nil {
		return 1
	}
	e, err := engine.New(
		engine.Options{
			DataDir:      data,
			Library:      library,
			HostCommand:  []string{program, roleHost},
			MemoryBytes:  1 << 30,
			StartTimeout: patience,
		},
		slog.New(slog.DiscardHandler),
		nil,
	)
	if err != nil {
		return 1
	}
	go func() {
		p, err := e.Ready(context.Background())
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(p)
		}
		if err != nil {
			os.Exit(1)
		}
	}()
	fmt.Fprintln(os.Stderr, e.Run(context.Background()))
	return 1
}

// The engine of a killed supervisor ends, although a client stays connected, and the next one waits
// for that.
func TestEngine_EndsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	o := withEngine(t)
	supervisor := exec.Command(testProgram(t), roleSupervisor, o.Library, o.DataDir)
	output, err := supervisor.StdoutPipe()
	must(t, err)
	must(t, supervisor.Start())
	var p engine.Connection
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p)
	}
	must(t, err)
	query(t, p, "CREATE TABLE kept (x Int8) ENGINE = MergeTree ORDER BY x")
	query(t, p, "INSERT INTO kept SELECT 1")
	idle, err := dial(p.HTTPURL)
	must(t, err)
	idle.send(request(p, "SELECT 1", ""))
	idle.receive(10)
	defer idle.reset()

	must(t, supervisor.Process.Kill())
	_ = supervisor.Wait() // it was killed
	next := run(t, o).ready()
	if got := query(t, next, "SELECT count() FROM kept"); got != "1" {
		t.Errorf("the next engine has %s rows, want 1", got)
	}
	if response, err := http.Get(p.HTTPURL); err == nil {
		response.Body.Close()
		t.Error("the engine of the killed supervisor still answers")
	}
}
