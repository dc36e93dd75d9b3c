package usage

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newTestCgroup creates a cgroup, or skips the test if that is not permitted.
func newTestCgroup(t *testing.T, name string) *Cgroup {
	t.Helper()
	c, err := NewCgroup(name+"-"+strconv.Itoa(os.Getpid()), false)
	if err != nil {
		t.Skip("cgroups are not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// startInCgroup starts a shell with a child in the cgroup. Both run until the test ends.
func startInCgroup(t *testing.T, c *Cgroup) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "(echo child; exec cat) <&3 & cat <&3; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{input}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.Start(cmd); err != nil {
		t.Skip("a start in a cgroup is not permitted here: ", err)
	}
	t.Cleanup(func() {
		_, _ = ours.Close(), input.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "child\n" {
		t.Fatalf("the child printed %q, %v", line, err)
	}
	return cmd
}

func TestCgroup_HoldsOnlyTheCommandAndItsChildren(t *testing.T) {
	c := newTestCgroup(t, "test-whole")
	cmd := startInCgroup(t, c)
	pids := pidsOf(t, c.path)
	if len(pids) < 2 || !slices.Contains(pids, strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("the cgroup holds %v, want the command %d and its child", pids, cmd.Process.Pid)
	}
	threads, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "test-whole") {
			t.Errorf("thread %s of this process is still in the job's cgroup:\n%s", path, text)
		}
	}
}

// The figures of a cgroup count while the command is in it, or in one below it.
func TestRead_UsesTheCgroupOfTheCommand(t *testing.T) {
	c, other := newTestCgroup(t, "test-own"), newTestCgroup(t, "test-other")
	cmd := startInCgroup(t, c)
	pid := strconv.Itoa(cmd.Process.Pid)
	totals := Read(cmd.Process.Pid, c)
	if s := totals.counted.cpuSeconds; totals.cgroup != c.path || s == nil || *s <= 0 || *s > 30 {
		t.Errorf("cgroup %q with a CPU time of %v s, want %s with some", totals.cgroup, s, c.path)
	}
	if totals = Read(cmd.Process.Pid, nil); totals.cgroup != "" || totals.tree.cpuSeconds == nil {
		t.Errorf("without a created cgroup: %q is used, want the process tree", totals.cgroup)
	}
	below := filepath.Join(c.path, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, move := range []struct{ to, want string }{{below, c.path}, {other.path, ""}} {
		if err := writeFile(move.to, "cgroup.procs", pid); err != nil {
			t.Fatal(err)
		}
		if totals = Read(cmd.Process.Pid, c); totals.cgroup != move.want {
			t.Errorf("the command is in %s: cgroup %q is used, want %q", move.to, totals.cgroup, move.want)
		}
	}
	if err := os.Remove(below); err != nil {
		t.Error(err)
	}
}
