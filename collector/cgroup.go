package collector

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Cgroup v2 has one hierarchy, v1 one for each controller or few of them, and a
// system may have both. Of v1 these controllers count what a job takes.
const (
	onUnified = "" // the hierarchy of v2
	onCPUAcct = "cpuacct"
	onMemory  = "memory"
	onBlkio   = "blkio"
)

// group is a cgroup: its folder in each hierarchy that counts something, by
// controller. Empty: there is none.
type group map[string]string

// cgroupMount is a place where a hierarchy of cgroups is mounted.
type cgroupMount struct {
	controllers []string // of v1, among other options; nil: v2
	root        string   // cgroup that is mounted there
	point       string
}

// parseCgroupMounts reads the text of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)).
func parseCgroupMounts(mountinfo string) []cgroupMount {
	var all []cgroupMount
	for line := range strings.Lines(mountinfo) {
		head, tail, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(head), strings.Fields(tail)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		m := cgroupMount{root: unescapeMount(where[3]), point: unescapeMount(where[4])}
		switch what[0] {
		case "cgroup":
			m.controllers = strings.Split(what[2], ",")
		case "cgroup2":
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// unescapeMount undoes the octal escapes of blanks and backslashes.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// membership is the cgroup of a process in one hierarchy.
type membership struct {
	controllers []string // nil: v2
	path        string
}

// parseMemberships reads the text of /proc/<pid>/cgroup (cgroups(7)). A cgroup
// that is removed, or outside what this process may see, is left out.
func parseMemberships(text string) []membership {
	var all []membership
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, found := strings.Cut(rest, ":")
		if !found || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, " (deleted)") || slices.Contains(strings.Split(path, "/"), "..") {
			continue
		}
		m := membership{path: path}
		if controllers != "" {
			m.controllers = strings.Split(controllers, ",")
		} else if number != "0" {
			continue
		}
		all = append(all, m)
	}
	return all
}

// folder returns where the cgroup of a membership is mounted; ok is false if it
// is nowhere.
func (m membership) folder(mounts []cgroupMount) (folder string, ok bool) {
	for _, at := range mounts {
		if (m.controllers == nil) != (at.controllers == nil) || m.controllers != nil && !slices.Contains(at.controllers, m.controllers[0]) {
			continue
		}
		below, found := strings.CutPrefix(m.path, strings.TrimSuffix(at.root, "/"))
		if found && (below == "" || below[0] == '/') {
			return strings.TrimSuffix(at.point+below, "/"), true
		}
	}
	return "", false
}

// counters are those controllers of a membership that count what a job takes.
func (m membership) counters() []string {
	if m.controllers == nil {
		return []string{onUnified}
	}
	return slices.DeleteFunc(slices.Clone(m.controllers), func(c string) bool { return c != onCPUAcct && c != onMemory && c != onBlkio })
}

// parseKeyed reads lines of a key and a number, as in cpu.stat and memory.stat.
func parseKeyed(text []byte) map[string]float64 {
	all := map[string]float64{}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			all[string(key)] = float64(n)
		}
	}
	return all
}

// scaled sums entries; nil if one is missing.
func scaled(entries map[string]float64, unit float64, keys ...string) *float64 {
	sum := 0.0
	for _, key := range keys {
		value, found := entries[key]
		if !found {
			return nil
		}
		sum += value * unit
	}
	return &sum
}

// parseIOStat reads io.stat of v2: bytes that storage moved, of those devices
// that count. A text without devices is nothing moved.
func parseIOStat(text []byte, counts func(device string) bool) (read, written float64, ok bool) {
	devices, counted := 0, 0
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		devices++
		if !counts(fields[0]) {
			continue
		}
		counted++
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			n, err := strconv.ParseUint(value, 10, 64)
			switch {
			case err != nil:
			case key == "rbytes":
				read += float64(n)
			case key == "wbytes":
				written += float64(n)
			}
		}
	}
	return read, written, counted > 0 || devices == 0
}

// parseBlkio reads blkio.throttle.io_service_bytes_recursive and its like of v1.
// A text without devices tells nothing: kernels from 6.9 on write it whatever is
// moved, until a limit is set.
func parseBlkio(text []byte, counts func(device string) bool) (read, written float64, ok bool) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 || !counts(fields[0]) {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			continue
		}
		switch fields[1] {
		case "Read":
			read, ok = read+float64(n), true
		case "Write":
			written, ok = written+float64(n), true
		}
	}
	return read, written, ok
}

// parsePIDs reads the text of cgroup.procs. A process of another namespace is 0.
func parsePIDs(text []byte) []int {
	var all []int
	for line := range bytes.Lines(text) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
