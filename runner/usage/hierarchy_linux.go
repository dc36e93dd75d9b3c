package usage

import (
	"os"
	"path/filepath"
	"sync"
)

// mountedCgroups returns the mounts of cgroup v2 of this system, which are read once.
var mountedCgroups = sync.OnceValue(func() []cgroupMount {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseCgroupMounts(string(text))
})

// cgroupOf returns the directory of the cgroup of a process, which is "self" or a PID; empty if it
// is unknown.
func cgroupOf(process string) string {
	text, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return ""
	}
	return dirOf(parseMembership(string(text)), mountedCgroups())
}

// readCgroup returns what a cgroup has counted; nothing for an empty directory. A figure is missing
// if its controller is disabled or the kernel is too old.
func readCgroup(dir string) (c counters, pressure map[string]stallTime) {
	pressure = map[string]stallTime{}
	if dir == "" {
		return c, pressure
	}
	for _, r := range resources {
		if text, err := os.ReadFile(filepath.Join(dir, r+".pressure")); err == nil {
			pressure[r] = parsePressure(text)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil {
		c.cpuSeconds = sumOf(parseKeyed(text), 1e-6, "usage_usec")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
		c.memoryBytes = sumOf(parseKeyed(text), 1, "anon", "file_mapped")
	}
	return c, pressure
}
