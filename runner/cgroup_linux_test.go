package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"courier/runner/usage"
	"courier/schemas"
)

// needsCgroups skips the test unless a command can be started in its own cgroup.
func needsCgroups(t *testing.T) {
	t.Helper()
	c, err := usage.NewCgroup("test-permission", false)
	if err != nil {
		t.Skip("cgroups are not permitted: ", err)
	}
	p, err := startProcess(exec.Command("true"), c, false, defaultSize, func(int, []byte) {})
	if err != nil {
		t.Skip("starting a command in a cgroup is not permitted: ", err)
	}
	<-p.exited
	for range p.chunks {
	}
	p.close()
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
}

func TestRun_MeasuresItsCgroup(t *testing.T) {
	for _, test := range []struct {
		name string
		off  bool
	}{{"in its own cgroup", false}, {"in the cgroup of this process", true}} {
		t.Run(test.name, func(t *testing.T) {
			if !test.off {
				needsCgroups(t)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if err := w.Close(); err != nil { // the command ends after its epoch
				t.Fatal(err)
			}
			j, err := Run(t.Context(), Options{
				Request: schemas.JobRequest{
					JobID:      "grouped",
					Model:      "m",
					CPUs:       schemas.CPUs{1},
					BatchSizes: []int{8},
					Epochs:     1,
				},
				Node:     "n",
				Command:  []string{os.Args[0], "--job", "work"},
				NoPTY:    true,
				NoCgroup: test.off,
				SpoolDir: t.TempDir(),
				Stdin:    r,
				Patience: 1,
			}, quiet)
			if err != nil || len(j.Epochs) != 1 {
				t.Fatalf("Run() = %+v, %v, want an epoch", j, err)
			}
			e := j.Epochs[0]
			if e.JobCPUSeconds == nil || *e.JobCPUSeconds <= 0.01 || *e.JobCPUSeconds > 60 {
				t.Errorf("CPU time = %v, want the time of 200 million additions", e.JobCPUSeconds)
			}
			if test.off && (e.JobCPUPressureRatio != nil || e.JobIOPressureRatio != nil) {
				t.Errorf("pressure = %v, %v without its own cgroup, want none",
					e.JobCPUPressureRatio, e.JobIOPressureRatio)
			}
			left, _ := filepath.Glob("/sys/fs/cgroup/*/courier-run-grouped-*")
			more, _ := filepath.Glob("/sys/fs/cgroup/courier-run-grouped-*")
			if left = append(left, more...); len(left) > 0 {
				t.Errorf("cgroups %v are left", left)
			}
		})
	}
}
