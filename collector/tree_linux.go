package collector

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ticksPerSecond is the unit of CPU times in /proc (USER_HZ), the same on every
// architecture that Go knows.
const ticksPerSecond = 100

// usageOf reads what the process and its descendants took so far. CPU time and
// bytes of ended children are in those of the parent that waited for them.
func usageOf(first int) usage {
	members := family(processes(), first)
	if len(members) == 0 {
		return usage{}
	}
	var seconds, memory, read, written float64
	readable := true
	for _, p := range members {
		seconds += float64(p.ticks) / ticksPerSecond
		memory += float64(p.residentPages) * float64(os.Getpagesize())
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/io")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		r, w, ok := parseIO(text)
		readable = readable && err == nil && ok
		read, written = read+r, written+w
	}
	u := usage{cpuSeconds: &seconds}
	if memory > 0 { // a process that has ended and waits to be noticed has none
		u.memoryBytes = &memory
	}
	if readable { // one of another user makes the sum unknown
		u.readBytes, u.writtenBytes = &read, &written
	}
	return u
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
