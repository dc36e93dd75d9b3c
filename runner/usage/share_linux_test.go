package usage

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// contentOf returns the content of a file without the final newline.
func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestCgroup_SharesProcessorsByWeight(t *testing.T) {
	c, err := NewSharingCgroup("test-share-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Skip("sharing of processors is not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	startInCgroup(t, c)
	dir, control, err := c.cpuControl()
	if err != nil {
		t.Fatal(err)
	}
	if pids, ok := pidsIn(dir); !ok || len(pids) < 2 {
		t.Errorf("%s holds %v, want the command and its child", dir, pids)
	}

	want := map[bool][]string{false: {"3072", "-1"}, true: {"3072", "300000"}}
	if c.v1 == "" {
		want = map[bool][]string{false: {"300", "max 100000"}, true: {"300", "300000 100000"}}
	}
	for _, isCapped := range []bool{true, false} {
		if err := c.SetCPUs(3, isCapped); err != nil {
			t.Fatal(err)
		}
		got := []string{contentOf(t, dir, control.weight), contentOf(t, dir, control.limit)}
		if !slices.Equal(got, want[isCapped]) {
			t.Errorf("SetCPUs(3, %t) = %q, want %q", isCapped, got, want[isCapped])
		}
	}
	if err := c.SetCPUs(0, false); err == nil {
		t.Error("SetCPUs(0) returned no error: a weight of 0 would mean something else")
	}
}

// The files of both versions have the values of their documentation, wherever the test runs.
func TestSetCPUs_WritesTheFilesOfBothVersions(t *testing.T) {
	for _, test := range []struct {
		name     string
		isV1     bool
		files    []string
		cpus     float64
		isCapped bool
		want     []string
	}{
		{"v2", false, []string{"cpu.weight", "cpu.max"}, 2, false, []string{"200", "max 100000"}},
		{"v2 capped", false, []string{"cpu.weight", "cpu.max"}, 2, true, []string{"200", "200000 100000"}},
		{"v2 a part", false, []string{"cpu.weight", "cpu.max"}, 0.25, false, []string{"25", "max 100000"}},
		{"v2 many", false, []string{"cpu.weight", "cpu.max"}, 400, false, []string{"10000", "max 100000"}},
		{"v1", true, []string{"cpu.shares", "cpu.cfs_quota_us"}, 2, false, []string{"2048", "-1"}},
		{"v1 capped", true, []string{"cpu.shares", "cpu.cfs_quota_us"}, 2, true, []string{"2048", "200000"}},
		{"v1 a part", true, []string{"cpu.shares", "cpu.cfs_quota_us"}, 0.25, false, []string{"256", "-1"}},
		{"v1 many", true, []string{"cpu.shares", "cpu.cfs_quota_us"}, 400, false, []string{"262144", "-1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := writeFile(dir, test.files[0], ""); err != nil {
				t.Fatal(err)
			}
			c := &Cgroup{unified: dir}
			if test.isV1 {
				c.v1 = dir
			}
			if err := c.SetCPUs(test.cpus, test.isCapped); err != nil {
				t.Fatal(err)
			}
			for i, name := range test.files {
				if got := contentOf(t, dir, name); got != test.want[i] {
					t.Errorf("%s = %q, want %q", name, got, test.want[i])
				}
			}
		})
	}
	c := &Cgroup{unified: t.TempDir()}
	if err := c.SetCPUs(2, false); err == nil {
		t.Error("a cgroup without a CPU controller: no error")
	}
}

// Jobs that reserve the CPUs of a machine never share one while there are enough.
func TestReservation_PinsJobsToDifferentCPUs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cpus")
	reservations := make([]*Reservation, 2)
	for i := range reservations {
		r, err := newReservation(dir)
		if err != nil {
			t.Fatal(err)
		}
		reservations[i] = r
	}
	all := reservations[0].own.Count()
	if all < 2 {
		t.Skip("one CPU cannot be shared out")
	}
	first, second := reservations[0], reservations[1]
	for _, step := range []struct {
		r         *Reservation
		cpus      int
		want      int
		wantOther int
	}{
		{first, all, all, 0},
		{second, 1, 0, all}, // none is free yet
		{first, all - 1, all - 1, 0},
		{second, 1, 1, all - 1},
		{first, all, all - 1, 1},
		{second, 0, 0, all - 1},
		{first, all + 1, all, 0},
	} {
		other := map[*Reservation]*Reservation{first: second, second: first}[step.r]
		if got := step.r.reserve(step.cpus); got != step.want || len(other.locks) != step.wantOther {
			t.Errorf("reserve(%d) = %d beside %d, want %d beside %d",
				step.cpus, got, len(other.locks), step.want, step.wantOther)
		}
		for cpu := range first.locks {
			if second.locks[cpu] != nil {
				t.Fatalf("CPU %d is reserved twice", cpu)
			}
		}
	}
}

func TestReservation_PinsAllThreads(t *testing.T) {
	c, err := NewSharingCgroup("test-pin-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Skip("sharing of processors is not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	startInCgroup(t, c)
	r, err := newReservation(filepath.Join(t.TempDir(), "cpus"))
	if err != nil {
		t.Fatal(err)
	}
	all := r.own.Count()
	for _, test := range []struct {
		cpus int
		want int
		ok   bool
	}{{1, 1, true}, {all + 1, all, false}, {all, all, true}} {
		if ok, err := r.Pin(c, test.cpus); ok != test.ok || err != nil {
			t.Fatalf("Pin(%d) = %t, %v, want %t", test.cpus, ok, err, test.ok)
		}
		threads, err := c.threads()
		if err != nil || len(threads) < 2 {
			t.Fatalf("the cgroup has the threads %v, %v", threads, err)
		}
		for _, thread := range threads {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(thread, &set); err != nil || set.Count() != test.want {
				t.Errorf("Pin(%d): thread %d may use %d CPUs, %v, want %d",
					test.cpus, thread, set.Count(), err, test.want)
			}
		}
	}
}
