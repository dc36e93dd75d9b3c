package usage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// cgroupMount is a mount of the hierarchy of cgroup v2.
type cgroupMount struct {
	root  string // the cgroup that is mounted
	point string // the directory of that cgroup
}

// parseCgroupMounts parses the text of /proc/<pid>/mountinfo (see proc_pid_mountinfo(5)).
func parseCgroupMounts(mountinfo string) []cgroupMount {
	var mounts []cgroupMount
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		mount, filesystem, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if len(fields) >= 5 && strings.HasPrefix(filesystem, "cgroup2 ") {
			mounts = append(mounts, cgroupMount{escapes.Replace(fields[3]), escapes.Replace(fields[4])})
		}
	}
	return mounts
}

// parseMembership returns the cgroup in the text of /proc/<pid>/cgroup (see cgroups(7)). It is empty if
// the cgroup is removed, or outside the namespace of this process.
func parseMembership(text string) string {
	for line := range strings.Lines(text) {
		path, isV2 := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		isRemoved := strings.HasSuffix(path, " (deleted)")
		isOutside := slices.Contains(strings.Split(path, "/"), "..")
		if isV2 && strings.HasPrefix(path, "/") && !isRemoved && !isOutside {
			return path
		}
	}
	return ""
}

// dirOf returns the directory of a cgroup; empty if it is not mounted.
func dirOf(cgroup string, mounts []cgroupMount) string {
	for _, mount := range mounts {
		below, found := strings.CutPrefix(cgroup, strings.TrimSuffix(mount.root, "/"))
		if found && strings.HasPrefix(below+"/", "/") && cgroup != "" {
			return strings.TrimSuffix(mount.point+below, "/")
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
