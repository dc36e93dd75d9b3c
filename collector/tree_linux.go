package collector

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc (USER_HZ), the same on every
// architecture that Go knows.
const ticksPerSecond = 100

// consumed reads what the process, its descendants and their cgroup took so far.
// placed is the cgroup that was made for them, if any. CPU time and bytes of
// ended children are in those of the parent that waited for them.
func consumed(first int, placed group) consumption {
	candidates := candidatesOf(first)
	members := family(processes(), first)
	c := consumption{at: time.Now()}
	if len(members) > 0 {
		c.tree, c.waits = usageOf(members), waitsOf(members)
	}
	c.group = placed // of one that has ended: it moves no more
	if slices.ContainsFunc(members, func(p process) bool { return p.pid == first && !p.exiting }) {
		c.group = own(candidates, placed, members)
	}
	c.counted, c.pressure = c.group.read()
	return c
}

// usageOf sums what processes took.
func usageOf(members []process) usage {
	var seconds, resident, read, written float64
	readable := true
	for _, p := range members {
		seconds += float64(p.ticks) / ticksPerSecond
		resident += float64(p.residentPages) * float64(os.Getpagesize())
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/io")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		r, w, ok := parseIO(text)
		readable = readable && err == nil && ok
		read, written = read+r, written+w
	}
	u := usage{cpuSeconds: &seconds}
	if resident > 0 { // a process that has ended and waits to be noticed has none
		u.memoryBytes = &resident
	}
	if readable { // one of another user makes the sum unknown
		u.readBytes, u.writtenBytes = &read, &written
	}
	return u
}

// waitsOf returns how long each thread of some processes waited for storage; nil
// if the kernel does not account delays.
func waitsOf(members []process) *waits {
	if !accountsDelays() {
		return nil
	}
	w := &waits{seconds: map[int]float64{}}
	for _, p := range members {
		w.childFaults += p.childFaults
		tasks := "/proc/" + strconv.Itoa(p.pid) + "/task/"
		threads, err := os.ReadDir(tasks)
		if err != nil {
			continue // it ended meanwhile
		}
		for _, t := range threads {
			text, err := os.ReadFile(tasks + t.Name() + "/stat")
			if err != nil {
				continue
			}
			if thread, ok := parseProcess(text); ok {
				w.seconds[thread.pid] = float64(thread.delayTicks) / ticksPerSecond
			}
		}
	}
	return w
}

// accountsDelays reports whether the kernel counts how long tasks wait for
// storage. Kernels before 5.14 have no switch for it while they run; there the
// first process tells, because it waited for storage when the system booted.
func accountsDelays() bool {
	text, err := os.ReadFile("/proc/sys/kernel/task_delayacct")
	if err == nil {
		return strings.TrimSpace(string(text)) == "1"
	}
	if text, err = os.ReadFile("/proc/1/stat"); err != nil {
		return false
	}
	first, ok := parseProcess(text)
	return ok && first.delayTicks > 0
}

// processes returns every process that can be read.
func processes() []process {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }() // it was only read
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []process
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		if p, ok := parseProcess(text); ok {
			all = append(all, p)
		}
	}
	return all
}
