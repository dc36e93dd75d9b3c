package python_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// run runs a command, and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// install builds the wheel, and installs it into a virtual environment. It skips the test where
// Python or the package registry is not available.
func install(t *testing.T) (python string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a wheel, which needs the package registry")
	}
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := run(t, ".", nil, "python3", "-m", "venv", venv); err != nil {
		t.Skipf("python3 -m venv is not available: %v\n%s", err, out)
	}
	python = filepath.Join(venv, "bin", "python")
	if out, err := run(t, ".", nil, python, "-m", "pip", "install", "--quiet", "--retries=1",
		"--timeout=10", "setuptools", "wheel", "nats-py"); err != nil {
		t.Skipf("the package registry is not available: %v\n%s", err, out)
	}

	source := t.TempDir() // setuptools writes into it
	if err := os.CopyFS(source, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, source, nil, python, "-m", "pip", "wheel", "--quiet", "--no-deps",
		"--no-build-isolation", "--wheel-dir", "dist", "."); err != nil {
		t.Fatalf("build the wheel: %v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(source, "dist", "courier_client-*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("wheels %v, %v; want one", wheels, err)
	}
	if out, err := run(t, ".", nil, python, "-m", "pip", "install", "--quiet", "--no-deps",
		wheels[0]); err != nil {
		t.Fatalf("install the wheel: %v\n%s", err, out)
	}
	return python
}

// The instrumentation passes its tests, which need no package.
func TestInstrumentation(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	for _, name := range []string{"keras", "loop", "passes", "process"} {
		out, err := run(t, "tests", env, python, "-m", "unittest", "test_instrument_"+name)
		if err != nil {
			t.Errorf("unittest: %v\n%s", err, out)
		}
	}
}

// The installed wheel passes its tests, and publishes events of the contract.
func TestPythonClient_PublishesTheEventsOfTheContract(t *testing.T) {
	python := install(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	tests, err := filepath.Abs("tests")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"COURIER_TEST_NATS=" + server.URL(), "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := run(t, tests, env, python, "-m", "unittest", "-v", "test_core"); err != nil {
		t.Fatalf("unittest: %v\n%s", err, out)
	}

	loop, err := filepath.Abs(filepath.Join("examples", "loop.py"))
	if err != nil {
		t.Fatal(err)
	}
	env = []string{"COURIER_NATS_URL=" + server.URL(), "COURIER_JOB_ID=py-3"}
	if out, err := run(t, t.TempDir(), env, python, loop); err != nil {
		t.Fatalf("loop.py: %v\n%s", err, out)
	}

	for job, want := range map[string][]string{
		"py-1": {"started", "epoch 1 in 1.5 s: 0.75", "epoch 2 in 1.25 s: 0.875", "finished after 2"},
		"py-2": {"started", "failed after 0: ValueError: out of memory"},
	} {
		if diff := cmp.Diff(want, eventsOf(t, b, job, len(want))); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", job, diff)
		}
	}
	if events := eventsOf(t, b, "py-3", 7); events[6] != "finished after 5" {
		t.Errorf("events of the example: %v, want started, 5 epochs and finished", events)
	}
}

// eventsOf returns n valid events of a job as text.
func eventsOf(t *testing.T, b *bus.Bus, job string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all []string
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{schemas.JobSubject(job, "*")}}
	err := b.Follow(ctx, o, func(r bus.Record) error {
		if all = append(all, text(r.Event)); len(all) == n {
			cancel()
		}
		return nil
	})
	if err != nil || len(all) != n {
		t.Fatalf("events of %s: %v, %v; want %d", job, all, err, n)
	}
	return all
}

// text returns the figures of an event.
func text(e schemas.Event) string {
	switch e := e.(type) {
	case *schemas.Started:
		return "started"
	case *schemas.Epoch:
		return fmt.Sprintf("epoch %d in %g s: %g", e.Epoch, e.DurationSeconds, *e.Accuracy)
	case *schemas.Ended:
		s := fmt.Sprintf("%s after %d", e.Outcome, e.EpochsDone)
		if e.Reason != "" {
			s += ": " + e.Reason
		}
		return s
	}
	return e.Subject()
}
