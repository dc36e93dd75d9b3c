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
	pids, ok := pidsIn(c.path)
	if !ok || len(pids) < 2 || !slices.Contains(pids, cmd.Process.Pid) {
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

// A cgroup that another program created is the job's own while it has no other process.
func TestRead_FindsTheJobsOwnCgroup(t *testing.T) {
	c := newTestCgroup(t, "test-own")
	cmd := startInCgroup(t, c)
	totals := Read(cmd.Process.Pid, nil)
	if totals.cgroup != c.path {
		t.Errorf("cgroup of the job = %q, want %s", totals.cgroup, c.path)
	}
	if s := totals.counted.cpuSeconds; s == nil || *s <= 0 || *s > 30 {
		t.Errorf("CPU time of the cgroup = %v s, want some", s)
	}
	other := startInCgroup(t, c)
	if totals = Read(cmd.Process.Pid, nil); totals.cgroup != "" {
		t.Errorf("cgroup of the job = %v although process %d is in it, want none",
			totals.cgroup, other.Process.Pid)
	}
	if totals = Read(cmd.Process.Pid, c); totals.cgroup != c.path {
		t.Errorf("cgroup of the job = %q, want the created one, %s", totals.cgroup, c.path)
	}
}

// Every process of the system is in a cgroup. A shared one must not be used.
func TestRead_IgnoresSharedCgroups(t *testing.T) {
	totals := Read(os.Getppid(), nil) // the parent of this process, which is its child
	if dir := totals.cgroup; dir != "" {
		pids, ok := pidsIn(dir)
		if !ok {
			t.Errorf("cgroup %s is used although it is unreadable", dir)
		}
		members := family(processes(), os.Getppid())
		for _, pid := range pids {
			if !slices.ContainsFunc(members, func(p process) bool { return p.pid == pid }) {
				t.Errorf("cgroup %s is used although process %d is not of the job", dir, pid)
			}
		}
	}
	if totals.tree.cpuSeconds == nil {
		t.Error("the CPU time of the process tree is unknown")
	}
}
