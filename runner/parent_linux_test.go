package runner_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"courier/runner"

	"golang.org/x/sys/unix"
)

// runnerVariable makes this test binary a runner of a command that prints its process ID and waits.
const runnerVariable = "COURIER_TEST_RUNNER"

func TestKilledRunner(t *testing.T) {
	if os.Getenv(runnerVariable) == "" {
		t.Skip("it is the process of TestRun_IsKilledWithItsCommand")
	}
	o := options(t, []string{"sh", "-c", "echo $$; exec sleep 3600"})
	o.SpoolDir, o.NoPTY, o.NoCgroup, o.Stdout = os.Getenv(runnerVariable), true, true, os.Stdout
	_, _ = runner.Run(t.Context(), o, quiet)
}

// A command does not run on unwatched when its runner is killed, and the next run removes what the killed
// one has left.
func TestRun_IsKilledWithItsCommand(t *testing.T) {
	temporary := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledRunner$")
	cmd.Env = append(os.Environ(), runnerVariable+"="+t.TempDir(), "TMPDIR="+temporary)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	command, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Process.Kill(), ignoreExit(cmd.Wait())); err != nil {
		t.Fatal(err)
	}
	ended := []unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}
	if n, err := unix.Poll(ended, int(patience.Milliseconds())); n != 1 {
		_ = syscall.Kill(pid, unix.SIGKILL)
		t.Errorf("the command still runs: %v", err)
	}
	left := func() []string {
		all, err := filepath.Glob(filepath.Join(temporary, "courier-*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if len(left()) != 1 {
		t.Fatalf("the killed runner has left %v, want one directory", left())
	}
	for _, path := range left() {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", temporary)
	if _, err := runner.Run(t.Context(), options(t, []string{"true"}), quiet); err != nil {
		t.Fatal(err)
	}
	if all := left(); len(all) > 0 {
		t.Errorf("the next run has left %v, want nothing", all)
	}
}

func ignoreExit(err error) error {
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		return nil
	}
	return err
}
