//go:build linux && amd64 && !noengine

package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/store/engine"
	"courier/store/engine/host"

	"github.com/prometheus/client_golang/prometheus"
)

// patience bounds the waits of a test. It only guards against hanging.
const patience = 5 * time.Minute

// runningEngine is an Engine under test whose Run was called.
type runningEngine struct {
	*engine.Engine
	t       testing.TB
	options engine.Options
	cancel  context.CancelFunc
	done    chan error
	log     *bustest.Buffer
	reg     *prometheus.Registry
}

// run starts an Engine, which is stopped when the test ends.
func run(t testing.TB, o engine.Options) *runningEngine {
	t.Helper()
	log, reg := bustest.NewBuffer(), prometheus.NewRegistry()
	e, err := engine.New(o, slog.New(slog.NewTextHandler(log, nil)), reg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &runningEngine{Engine: e, t: t, options: o, cancel: cancel, done: make(chan error, 1), log: log, reg: reg}
	go func() { r.done <- e.Run(ctx) }()
	t.Cleanup(func() { cancel(); r.wait() })
	return r
}

// wait returns the result of Run; it may be called several times.
func (r *runningEngine) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(patience):
		r.t.Fatal("Run does not return")
		return nil
	}
}

// stop ends Run and returns its result.
func (r *runningEngine) stop() error { r.cancel(); return r.wait() }

// ready waits for the endpoint.
func (r *runningEngine) ready() engine.Connection {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	p, err := r.Ready(ctx)
	if err != nil {
		r.t.Fatalf("Ready() = %v; log:\n%s", err, r.log)
	}
	return p
}

// readyAfter waits for an endpoint with a different PID.
func (r *runningEngine) readyAfter(pid int) engine.Connection {
	r.t.Helper()
	var p engine.Connection
	eventually(r.t, "the engine is started again", func() bool {
		p = r.ready()
		return p.PID != pid
	})
	return p
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("timeout waiting for: %s", what)
		}
	}
}

func fake(t testing.TB, mode string) engine.Options {
	t.Helper()
	return engine.Options{
		DataDir:      t.TempDir(),
		Library:      testProgram(t), // the fake does not load it
		HostCommand:  []string{testProgram(t), roleFakeHost, mode},
		StartTimeout: patience,
	}
}

func testProgram(t testing.TB) string {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	return program
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func (r *runningEngine) restarts() float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "courier_engine_restarts_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	r.t.Fatal("the metric of restarts is missing")
	return 0
}

// hostLog returns the output of the child, or "no file".
func (r *runningEngine) hostLog() string {
	content, err := os.ReadFile(filepath.Join(r.options.DataDir, "run", "host.log"))
	if err != nil {
		return "no file"
	}
	return string(content)
}

// snapshot lists the files of a directory with time and content, without logs.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".log") {
			return err // the engine still writes its logs
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %v %q\n", path, info.ModTime(), content)
		return err
	})
	must(t, err)
	return b.String()
}

// occupied listens on a port until the test ends.
func occupied(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The roles in which the tests run their own binary.
const (
	roleHost       = "engine-host" // the real host, with the real engine
	roleFakeHost   = "fake-host"   // a fake host, see the modes
	roleSupervisor = "supervisor"  // an Engine in a process that can be killed
)

// withoutLibrary counts the tests that were skipped because no engine was found.
var withoutLibrary atomic.Int64

// TestMain runs the tests, or a role.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		// With -race os.Exit waits a second; syscall.Exit does not.
		switch role, args := os.Args[1], os.Args[2:]; role {
		case roleHost:
			syscall.Exit(host.HostMain(args))
		case roleFakeHost:
			syscall.Exit(fakeHost(args[0], args[1:]))
		case roleSupervisor:
			syscall.Exit(superviseAlone(args[0], args[1]))
		}
	}
	status := m.Run()
	if n := withoutLibrary.Load(); n > 0 {
		fmt.Printf(
			"engine: %d tests skipped: no ClickHouse engine; run `courier engine install`, or set %s\n",
			n,
			libraryVariable,
		)
	}
	os.Exit(status)
}
