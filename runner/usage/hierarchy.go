package usage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Cgroup v2 has one hierarchy, which accounts what a job uses. Cgroup v1 has one for each controller or
// small set of controllers, and a system can have both. Only the CPU controller of v1 is used.
const (
	unified       = ""    // the hierarchy of v2
	cpuController = "cpu" // shares the processors, in v1 and v2
)

// cgroupMount is the mount of a hierarchy.
type cgroupMount struct {
	controllers []string // of v1, among other options; nil: v2
	root        string   // the cgroup that is mounted
	point       string   // the directory of that cgroup
}

// parseCgroupMounts parses the text of /proc/<pid>/mountinfo (see proc_pid_mountinfo(5)).
func parseCgroupMounts(mountinfo string) []cgroupMount {
	var mounts []cgroupMount
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		mount, filesystem, _ := strings.Cut(line, " - ")
		mountFields, fsFields := strings.Fields(mount), strings.Fields(filesystem)
		if len(mountFields) < 5 || len(fsFields) < 3 {
			continue
		}
		m := cgroupMount{root: escapes.Replace(mountFields[3]), point: escapes.Replace(mountFields[4])}
		switch fsFields[0] {
		case "cgroup":
			m.controllers = strings.Split(fsFields[2], ",")
		case "cgroup2":
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// membership is the cgroup of a process in one hierarchy.
type membership struct {
	controllers []string // of v1; nil: v2
	path        string
}

// parseMemberships parses the text of /proc/<pid>/cgroup (see cgroups(7)). It omits cgroups that
// are removed, or that are outside the namespace of this process.
func parseMemberships(text string) []membership {
	var memberships []membership
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, found := strings.Cut(rest, ":")
		isRemoved := strings.HasSuffix(path, " (deleted)")
		isOutside := slices.Contains(strings.Split(path, "/"), "..")
		if !found || !strings.HasPrefix(path, "/") || isRemoved || isOutside {
			continue
		}
		m := membership{path: path}
		if controllers != "" {
			m.controllers = strings.Split(controllers, ",")
		} else if number != "0" {
			continue
		}
		memberships = append(memberships, m)
	}
	return memberships
}

// has reports whether a hierarchy has a controller of v1, or is that of v2 for unified.
func has(controllers []string, controller string) bool {
	return controller == unified && controllers == nil || slices.Contains(controllers, controller)
}

// dirOf returns the directory of the cgroup with a controller; empty if it is not mounted.
func dirOf(memberships []membership, mounts []cgroupMount, controller string) string {
	for _, m := range memberships {
		for _, mount := range mounts {
			if !has(m.controllers, controller) || !has(mount.controllers, controller) {
				continue
			}
			below, found := strings.CutPrefix(m.path, strings.TrimSuffix(mount.root, "/"))
			if found && (below == "" || below[0] == '/') {
				return strings.TrimSuffix(mount.point+below, "/")
			}
		}
	}
	return ""
}

// parseKeyed parses lines of a key and a number, such as those of cpu.stat and memory.stat.
func parseKeyed(text []byte) map[string]float64 {
	values := map[string]float64{}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			values[string(key)] = float64(n)
		}
	}
	return values
}

// sumOf sums the values of keys in a unit. It returns nil if a key is missing.
func sumOf(values map[string]float64, unit float64, keys ...string) *float64 {
	sum := 0.0
	for _, key := range keys {
		value, found := values[key]
		if !found {
			return nil
		}
		sum += value * unit
	}
	return &sum
}

// parseIOStat parses io.stat and sums the bytes over the devices that count. An empty text means that
// nothing was transferred.
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

// parsePIDs parses the text of cgroup.procs. A process of another namespace has the PID 0.
func parsePIDs(text []byte) []int {
	var pids []int
	for line := range bytes.Lines(text) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
