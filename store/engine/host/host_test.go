//go:build linux && amd64 && !noengine

package host_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"courier/store/engine/host"
)

// TestMain runs the tests, or acts as the host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "engine-host" {
		os.Exit(host.HostMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

type hostResult struct {
	status int
	output string
}

// runHost runs a host whose lifetime pipe is closed by closeAfter.
func runHost(t *testing.T, withPipe bool, args ...string) hostResult {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"engine-host"}, args...)...)
	cmd.Dir = t.TempDir()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if withPipe {
		reading, writing, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer reading.Close()
		defer writing.Close()
		lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		cmd.ExtraFiles = []*os.File{reading, lock}
	}
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return hostResult{cmd.ProcessState.ExitCode(), output.String()}
}

func TestHostMain_ReportsWhyItCannotRun(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	for _, c := range []struct {
		name     string
		withPipe bool
		args     []string
		want     string
		status   int
	}{
		{"started by a user", false, []string{"-library", text, "-store", store}, "only `courier all`", 2},
		{"no library", true, nil, "-library and -store", 2},
		{"no store", true, []string{"-library", text}, "-store", 2},
		{"an unknown flag", true, []string{"-librory", text}, "librory", 2},
		{"not a library", true, []string{"-library", text, "-store", store}, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := runHost(t, c.withPipe, c.args...)
			if got.status != c.status || !strings.Contains(got.output, c.want) ||
				!strings.Contains(got.output, "host: ") {
				t.Errorf("HostMain(%q) = %d with %q, want %d with %q", c.args, got.status,
					got.output, c.status, c.want)
			}
		})
	}
}
