package usage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc (USER_HZ), which is the same on every
// architecture that Go supports.
const ticksPerSecond = 100

// Read returns the totals of a process and its descendants. The cgroup is the one that was created
// for them, or nil. The figures of a process include its reaped children.
func Read(pid int, c *Cgroup) Totals {
	all := processes()
	members := family(all, pid)
	t := Totals{at: time.Now()}
	isFirst := func(p process) bool { return p.pid == pid }
	t.isReaped = len(all) > 0 && !slices.ContainsFunc(all, isFirst)
	if len(members) > 0 {
		t.tree = countersOf(members)
	}

	t.cgroup = c.dir() // stays the same after the process has ended
	isAlive := func(p process) bool { return p.pid == pid && !p.isExiting }
	isInside := strings.HasPrefix(cgroupOf(strconv.Itoa(pid))+"/", t.cgroup+"/")
	if slices.ContainsFunc(members, isAlive) && !isInside {
		t.cgroup = "" // the command has moved to another one
	}
	t.counted, t.pressure = readCgroup(t.cgroup)
	return t
}

// countersOf sums the counters of processes.
func countersOf(members []process) counters {
	var seconds, waited, resident, read, written float64
	isReadable := true
	for _, p := range members {
		seconds += float64(p.ticks) / ticksPerSecond
		waited += cpuWaitOf(p.pid)
		resident += float64(p.residentPages) * float64(os.Getpagesize())
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/io")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended
		}
		r, w, ok := parseIO(text)
		isReadable = isReadable && err == nil && ok
		read, written = read+r, written+w
	}

	c := counters{cpuSeconds: &seconds}
	if waited > 0 { // 0: the kernel does not count it
		c.cpuWaitSeconds = &waited
	}
	if resident > 0 { // a zombie has no memory
		c.memoryBytes = &resident
	}
	if isReadable { // another user's process is not readable, and makes the sum unknown
		c.readBytes, c.writtenBytes = &read, &written
	}
	return c
}

// threadFiles returns the paths of a file of each thread of a process.
func threadFiles(pid int, name string) []string {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/" + name) // the pattern is valid
	return files
}

// cpuWaitOf returns how long the threads of a process have waited for a CPU (run delay of schedstat).
func cpuWaitOf(pid int) (seconds float64) {
	for _, file := range threadFiles(pid, "schedstat") {
		text, _ := os.ReadFile(file) // an error: the thread has ended
		if fields := strings.Fields(string(text)); len(fields) == 3 {
			nanoseconds, _ := strconv.ParseFloat(fields[1], 64)
			seconds += nanoseconds / 1e9
		}
	}
	return seconds
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
			continue // the process has ended
		}
		if p, ok := parseProcess(text); ok {
			all = append(all, p)
		}
	}
	return all
}
