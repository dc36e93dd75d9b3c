package usage

import (
	"os"
	"path/filepath"
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

// The files of the CPU controller have the values of their documentation.
func TestSetCPUs(t *testing.T) {
	for _, test := range []struct {
		name     string
		cpus     float64
		isCapped bool
		want     string
	}{
		{"weight", 2, false, "200, max 100000"},
		{"capped", 2, true, "200, 200000 100000"},
		{"a part", 0.25, false, "25, max 100000"},
		{"many", 400, false, "10000, max 100000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &Cgroup{t.TempDir()}
			if err := writeFile(c.path, weightFile, ""); err != nil {
				t.Fatal(err)
			}
			if err := c.SetCPUs(test.cpus, test.isCapped); err != nil {
				t.Fatal(err)
			}
			got := contentOf(t, c.path, weightFile) + ", " + contentOf(t, c.path, limitFile)
			if got != test.want {
				t.Errorf("weight and limit = %q, want %q", got, test.want)
			}
			if err := c.SetCPUs(0, false); err == nil {
				t.Error("SetCPUs(0) returned no error: a weight of 0 would mean something else")
			}
		})
	}
	c := &Cgroup{t.TempDir()}
	if err := c.SetCPUs(2, false); err == nil {
		t.Error("a cgroup without a CPU controller: no error")
	}
}

// Another user may have created the directory, with a link to a file that only this user may create.
func TestReservation_FollowsNoPlantedLink(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "nologin")
	r, err := newReservation(dir)
	if err != nil {
		t.Fatal(err)
	}
	for cpu := range len(r.own) * strconv.IntSize {
		if !r.own.IsSet(cpu) {
			continue
		}
		if err := os.Symlink(victim, filepath.Join(dir, strconv.Itoa(cpu))); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.reserve(1); got != 0 {
		t.Errorf("reserve() = %d CPUs by a planted link, want none", got)
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("the file that a planted link names was created")
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
	c := newTestCgroup(t, "test-pin")
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
