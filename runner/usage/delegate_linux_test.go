package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// cgroupOfFiles returns a directory with files of a cgroup, as the kernel would show them.
func cgroupOfFiles(t *testing.T, kind, controllers, enabled, pids string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"cgroup.controllers": controllers, "cgroup.subtree_control": enabled, "cgroup.procs": pids, "cgroup.type": kind,
	} {
		if name == "cgroup.type" && text == "" {
			continue // the root cgroup has no such file
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestShareProcessors_MovesTheOnlyProcessToALeaf(t *testing.T) {
	dir := cgroupOfFiles(t, "domain", "cpu memory", "", "7")
	leaf := filepath.Join(dir, runnerLeaf)
	if parent, err := shareProcessors(dir, 7); parent != dir || err != nil {
		t.Fatalf("shareProcessors(%s) = %q, %v, want the same", dir, parent, err)
	}
	if process := contentOf(t, leaf, "cgroup.procs"); process != "7" {
		t.Errorf("process of the leaf = %q, want 7", process)
	}
	if enabled := contentOf(t, dir, "cgroup.subtree_control"); enabled != "+cpu" {
		t.Errorf("the children get %q, want +cpu", enabled)
	}
}

// The process of an earlier call is in the leaf already.
func TestShareProcessors_KeepsTheProcessInItsLeaf(t *testing.T) {
	dir := cgroupOfFiles(t, "domain", "cpu memory", "cpu", "")
	parent, err := shareProcessors(filepath.Join(dir, runnerLeaf), 7)
	if parent != dir || err != nil {
		t.Errorf("shareProcessors of the leaf = %q, %v, want %s", parent, err, dir)
	}
}

func TestShareProcessors_ExplainsWhatWouldHelp(t *testing.T) {
	for _, test := range []struct{ kind, controllers, pids, want string }{
		{"", "cpu", "7", "it is the root cgroup"},
		{"threaded", "", "7", `its type is "threaded"`},
		{"domain", "pids", "7", "the controller cpu is not delegated to it"},
		{"domain", "cpu", "6\n7", "other processes are in it (6)"},
	} {
		dir := cgroupOfFiles(t, test.kind, test.controllers, "", test.pids)
		_, err := shareProcessors(dir, 7)
		want := fmt.Sprintf("cgroup %s cannot share the processors: %s; %s", dir, test.want, delegationHint)
		if err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, runnerLeaf)); err == nil {
			t.Errorf("%s: the cgroup has a leaf, want no change", test.want)
		}
	}
}

// A controller that the kernel of this machine refuses leaves the process where it was.
func TestMoveToLeaf_MovesBackIfTheKernelRefuses(t *testing.T) {
	c := newTestCgroup(t, "test-leaf")
	dir := c.path
	pid := startInCgroup(t, c).Process.Pid
	child := pidsOf(t, dir)
	if err := moveToLeaf(dir, pid, "unknown"); err == nil {
		t.Error("no error for an unknown controller")
	}
	got := pidsOf(t, dir) // the command may have started another process
	if !slices.Contains(got, strconv.Itoa(pid)) ||
		slices.ContainsFunc(child, func(p string) bool { return !slices.Contains(got, p) }) {
		t.Errorf("processes of the cgroup = %v, want %v", got, child)
	}
	if _, err := os.Stat(filepath.Join(dir, runnerLeaf)); err == nil {
		t.Error("the leaf is left")
	}
}

// pidsOf returns the processes of a cgroup.
func pidsOf(t *testing.T, dir string) []string {
	t.Helper()
	pids, err := words(dir, "cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
