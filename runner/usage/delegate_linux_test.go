package usage

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// kernelModel follows the rules of cgroup v2 as the kernel documents them (Documentation/
// admin-guide/cgroup-v2.rst, "No Internal Process Constraint" and "Top-down Constraint").
type kernelModel struct {
	groups   map[string]*modelGroup
	readOnly bool
}

type modelGroup struct {
	kind                      string
	controllers, enabled, pid []string
}

func (m *kernelModel) read(path string) (string, error) {
	g := m.groups[filepath.Dir(path)]
	if g == nil {
		return "", fs.ErrNotExist
	}
	switch filepath.Base(path) {
	case "cgroup.type":
		if g.kind == "" {
			return "", fs.ErrNotExist
		}
		return g.kind + "\n", nil
	case "cgroup.controllers":
		return strings.Join(g.controllers, " ") + "\n", nil
	case "cgroup.subtree_control":
		return strings.Join(g.enabled, " ") + "\n", nil
	case "cgroup.procs":
		return strings.Join(g.pid, "\n") + "\n", nil
	}
	return "", fs.ErrNotExist
}

func (m *kernelModel) write(path, text string) error {
	g := m.groups[filepath.Dir(path)]
	switch {
	case m.readOnly:
		return unix.EROFS
	case g == nil:
		return fs.ErrNotExist
	case filepath.Base(path) == "cgroup.procs":
		if len(g.enabled) > 0 {
			return unix.EBUSY
		}
		for _, other := range m.groups {
			other.pid = slices.DeleteFunc(other.pid, func(p string) bool { return p == text })
		}
		g.pid = append(g.pid, text)
		return nil
	}
	controller := strings.TrimPrefix(text, "+")
	if !slices.Contains(g.controllers, controller) {
		return unix.ENOENT
	}
	if len(g.pid) > 0 {
		return unix.EBUSY
	}
	g.enabled = append(g.enabled, controller)
	return nil
}

func (m *kernelModel) mkdir(path string) error {
	if m.readOnly {
		return unix.EROFS
	}
	if m.groups[path] != nil {
		return fs.ErrExist
	}
	m.groups[path] = &modelGroup{kind: "domain", controllers: m.groups[filepath.Dir(path)].enabled}
	return nil
}

func (m *kernelModel) rmdir(path string) error {
	if g := m.groups[path]; g == nil || len(g.pid) > 0 {
		return unix.EBUSY
	}
	delete(m.groups, path)
	return nil
}

func TestShareProcessors_MovesTheOnlyProcessToALeaf(t *testing.T) {
	m := &kernelModel{groups: map[string]*modelGroup{"/scope": {
		kind: "domain", controllers: []string{"cpu", "memory"}, pid: []string{"7"},
	}}}
	if err := m.write("/scope/cgroup.subtree_control", "+cpu"); err != unix.EBUSY {
		t.Fatalf("the model enables a controller above a process: %v", err)
	}
	leaf := "/scope/" + runnerLeaf
	for _, dir := range []string{"/scope", leaf} { // of the first run, and of the next one
		parent, err := shareProcessors(m, dir, 7)
		if parent != "/scope" || err != nil {
			t.Fatalf("shareProcessors(%s) = %q, %v, want /scope", dir, parent, err)
		}
	}
	if diff := cmp.Diff([]string{"7"}, m.groups[leaf].pid); diff != "" {
		t.Errorf("processes of the leaf (-want +got):\n%s", diff)
	}
	if err := m.mkdir("/scope/job"); err != nil {
		t.Fatal(err)
	}
	if got := m.groups["/scope/job"].controllers; !slices.Equal(got, []string{"cpu"}) {
		t.Errorf("controllers of a job = %v, want cpu", got)
	}
}

func TestShareProcessors_ExplainsWhatWouldHelp(t *testing.T) {
	for _, test := range []struct {
		group    modelGroup
		readOnly bool
		want     string
	}{
		{modelGroup{controllers: []string{"cpu"}, pid: []string{"7"}}, false, "it is the root cgroup"},
		{modelGroup{kind: "threaded", pid: []string{"7"}}, false, `its type is "threaded"`},
		{
			modelGroup{kind: "domain", controllers: []string{"pids"}, pid: []string{"7"}},
			false,
			"the controller cpu is not delegated to it",
		},
		{
			modelGroup{kind: "domain", controllers: []string{"cpu"}, pid: []string{"6", "7"}},
			false,
			"other processes are in it (6)",
		},
		{
			modelGroup{kind: "domain", controllers: []string{"cpu"}, pid: []string{"7"}},
			true,
			unix.EROFS.Error(),
		},
	} {
		m := &kernelModel{groups: map[string]*modelGroup{"/own": &test.group}, readOnly: test.readOnly}
		_, err := shareProcessors(m, "/own", 7)
		want := fmt.Sprintf("cgroup /own cannot share the processors: %s; %s", test.want, delegationHint)
		if err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
		if len(m.groups) != 1 || !slices.Contains(test.group.pid, "7") {
			t.Errorf("%s: cgroups = %v, want no change", test.want, m.groups)
		}
	}
}

// A controller that the kernel of this machine refuses leaves the process where it was.
func TestMoveToLeaf_MovesBackIfTheKernelRefuses(t *testing.T) {
	c := newTestCgroup(t, "test-leaf")
	dir := c.path
	pid := startInCgroup(t, c).Process.Pid
	child := pidsOf(t, dir)
	if err := moveToLeaf(systemFiles{}, dir, pid, "unknown"); err == nil {
		t.Error("no error for an unknown controller")
	}
	if got := pidsOf(t, dir); !slices.Contains(got, strconv.Itoa(pid)) || len(got) != len(child) {
		t.Errorf("processes of the cgroup = %v, want %v", got, child)
	}
	if _, err := os.Stat(filepath.Join(dir, runnerLeaf)); err == nil {
		t.Error("the leaf is left")
	}
}

// pidsOf returns the processes of a cgroup.
func pidsOf(t *testing.T, dir string) []string {
	t.Helper()
	pids, err := words(systemFiles{}, dir, "cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
