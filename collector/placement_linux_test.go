package collector

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/schemas"
)

// placed makes a cgroup on this machine, or skips the test and says why.
func placed(t *testing.T, name string) *placement {
	t.Helper()
	p, err := newPlacement(name + "-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Skip("cgroups are not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// resident starts a command in the placement, a shell with a child that both
// live until the test ends, and waits until both do.
func resident(t *testing.T, p *placement) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "(echo child; exec cat) <&3 & cat <&3; wait")
	isolate(cmd, false)
	input, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{input}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.start(cmd); err != nil {
		t.Skip("a start in a cgroup is not permitted here: ", err)
	}
	t.Cleanup(func() {
		_, _ = ours.Close(), input.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "child\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	return cmd
}

func TestPlacement_HoldsTheCommandAndItsChildrenAlone(t *testing.T) {
	p := placed(t, "test-whole")
	cmd := resident(t, p)
	for controller, folder := range p.folders {
		pids, ok := pidsIn(folder)
		if !ok || len(pids) < 2 || !slices.Contains(pids, cmd.Process.Pid) {
			t.Errorf("cgroup %q holds %v, want the command %d and its child", controller, pids, cmd.Process.Pid)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "test-whole") {
			t.Errorf("our thread %s stayed in the job's cgroup:\n%s", path, text)
		}
	}
}

// A cgroup that somebody else made is the job's own as long as no stranger is in it.
func TestConsumed_FindsACgroupThatOthersMade(t *testing.T) {
	p := placed(t, "test-own")
	cmd := resident(t, p)
	c := consumed(cmd.Process.Pid, nil)
	for controller, folder := range p.folders {
		if c.group[controller] != folder {
			t.Errorf("cgroup of the job = %v, want %q at %s", c.group, controller, folder)
		}
	}
	if c.counted.cpuSeconds == nil || *c.counted.cpuSeconds <= 0 || *c.counted.cpuSeconds > 30 {
		t.Errorf("it counted %v s of CPU time", c.counted.cpuSeconds)
	}
	stranger := resident(t, p)
	if c = consumed(cmd.Process.Pid, nil); len(c.group) > 0 {
		t.Errorf("cgroup of the job = %v although %d is in it, want none", c.group, stranger.Process.Pid)
	}
	if c = consumed(cmd.Process.Pid, p.folders); len(c.group) != len(p.folders) {
		t.Errorf("cgroup of the job = %v, want the one that was made for it: %v", c.group, p.folders)
	}
}

// Every process is in some cgroup here; nobody's figures may be made up of it.
func TestConsumed_LeavesOutWhatIsShared(t *testing.T) {
	c := consumed(os.Getppid(), nil) // the go command, or a shell: we are its child
	for _, folder := range c.group {
		pids, ok := pidsIn(folder)
		if !ok {
			t.Errorf("cgroup %s cannot be read, and counts", folder)
		}
		members := family(processes(), os.Getppid())
		for _, pid := range pids {
			if !slices.ContainsFunc(members, func(p process) bool { return p.pid == pid }) {
				t.Errorf("cgroup %s counts, and %d in it is a stranger", folder, pid)
			}
		}
	}
	if c.tree.cpuSeconds == nil {
		t.Error("the tree of our parent took an unknown CPU time")
	}
}

func TestRunJob_MeasuresItsCgroup(t *testing.T) {
	for _, test := range []struct {
		name string
		off  bool
	}{{"in a cgroup of its own", false}, {"in ours", true}} {
		t.Run(test.name, func(t *testing.T) {
			if !test.off {
				_ = resident(t, placed(t, "test-may"))
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if err := w.Close(); err != nil { // it ends when its work is done
				t.Fatal(err)
			}
			j, err := RunJob(t.Context(), JobOptions{Request: schemas.JobRequest{JobID: "grouped", Model: "m", CPUs: schemas.CPUs{1}, BatchSizes: []int{8}, Epochs: 1}, Node: "n",
				Command: []string{os.Args[0], "--job", "work"}, NoPTY: true, NoCgroup: test.off, SpoolDir: t.TempDir(), Stdin: r, Patience: 1}, quiet)
			if err != nil || len(j.Epochs) != 1 {
				t.Fatalf("RunJob() = %+v, %v, want an epoch", j, err)
			}
			e := j.Epochs[0]
			if e.JobCPUSeconds == nil || *e.JobCPUSeconds <= 0.01 || *e.JobCPUSeconds > 60 {
				t.Errorf("CPU time = %v, want that of 200 million additions", e.JobCPUSeconds)
			}
			if got := slices.Contains(e.JobCgroupFigures, schemas.FigureCPU); got == test.off {
				t.Errorf("its cgroup told %v, cgroups are off = %v", e.JobCgroupFigures, test.off)
			}
			if test.off && (e.JobCPUPressureRatio != nil || e.JobIOPressureRatio != nil) {
				t.Errorf("pressure = %v, %v without a cgroup of its own, want none", e.JobCPUPressureRatio, e.JobIOPressureRatio)
			}
			left, _ := filepath.Glob("/sys/fs/cgroup/*/courier-run-grouped-*")
			more, _ := filepath.Glob("/sys/fs/cgroup/courier-run-grouped-*")
			if left = append(left, more...); len(left) > 0 {
				t.Errorf("cgroups %v are left", left)
			}
		})
	}
}
