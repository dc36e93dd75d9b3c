package usage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// mountedCgroups returns the hierarchies of this system, which are read once.
var mountedCgroups = sync.OnceValue(func() []cgroupMount {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseCgroupMounts(string(text))
})

// membershipsOf returns the cgroups of a process, which is "self" or a PID.
func membershipsOf(process string) []membership {
	text, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return nil
	}
	return parseMemberships(string(text))
}

// cgroupCandidate is a cgroup of a job. It is the job's own if every process in it is the job's.
type cgroupCandidate struct {
	dir         string
	controllers []string
	pids        []int
}

// candidatesOf returns the cgroups of a process. The processes of the job must be listed after
// this call, so that the list includes every process of the candidates.
func candidatesOf(pid int) []cgroupCandidate {
	var candidates []cgroupCandidate
	for _, m := range membershipsOf(strconv.Itoa(pid)) {
		controllers := m.accounting()
		dir, ok := m.dir(mountedCgroups())
		if !ok || len(controllers) == 0 {
			continue
		}
		if pids, ok := pidsIn(dir); ok {
			candidates = append(candidates, cgroupCandidate{dir, controllers, pids})
		}
	}
	return candidates
}

// maxCgroups limits how many cgroups below the job's cgroup are read.
const maxCgroups = 256

// pidsIn returns the processes of a cgroup and its descendants; ok is false if they are unknown.
func pidsIn(dir string) (pids []int, ok bool) {
	cgroups := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if cgroups++; cgroups > maxCgroups {
			return fs.SkipAll
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		pids = append(pids, parsePIDs(text)...)
		return err
	})
	return pids, err == nil && cgroups <= maxCgroups
}

// ownCgroup returns the job's own cgroup: the one that was created for it, and candidates that
// contain only members of the job.
func ownCgroup(candidates []cgroupCandidate, created cgroupDirs, members []process) cgroupDirs {
	isMember := map[int]bool{}
	for _, p := range members {
		isMember[p.pid] = true
	}
	dirs := cgroupDirs{}
	for _, c := range candidates {
		for _, controller := range c.controllers {
			if created[controller] == c.dir || hasOnlyMembers(c.pids, isMember) {
				dirs[controller] = c.dir
			}
		}
	}
	return dirs
}

// hasOnlyMembers reports whether all living processes are members of the job.
func hasOnlyMembers(pids []int, isMember map[int]bool) bool {
	for _, pid := range pids {
		if isMember[pid] {
			continue
		}
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		if pid == 0 || !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return len(pids) > 0
}

// read returns what the cgroup has counted. A figure is missing if its controller is disabled or
// the kernel is too old.
func (d cgroupDirs) read() (counters, map[string]stallTime) {
	c, pressure := counters{}, map[string]stallTime{}
	if dir, ok := d[unified]; ok {
		c.readUnified(dir)
		for _, r := range resources {
			if text, err := os.ReadFile(filepath.Join(dir, r+".pressure")); err == nil {
				pressure[r] = parsePressure(text)
			}
		}
	}
	c.readV1(d)
	return c, pressure
}

// readUnified reads the files of v2.
func (c *counters) readUnified(dir string) {
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil {
		c.cpuSeconds = sumOf(parseKeyed(text), 1e-6, "usage_usec")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
		c.memoryBytes = sumOf(parseKeyed(text), 1, "anon", "file_mapped")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "io.stat")); err == nil {
		if read, written, ok := parseIOStat(text, isWholeDisk); ok {
			c.readBytes, c.writtenBytes = &read, &written
		}
	}
}

// readV1 reads the files of v1 for the figures that v2 does not have.
func (c *counters) readV1(d cgroupDirs) {
	if dir, ok := d[cpuacct]; ok && c.cpuSeconds == nil {
		if text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage")); err == nil {
			text = append([]byte("usage "), text...)
			c.cpuSeconds = sumOf(parseKeyed(text), 1e-9, "usage")
		}
	}
	if dir, ok := d[memory]; ok && c.memoryBytes == nil {
		if text, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
			c.memoryBytes = sumOf(parseKeyed(text), 1, "total_rss", "total_mapped_file")
		}
	}

	// The kernel and its I/O scheduler determine which policy has figures.
	for _, policy := range []string{"throttle", "bfq"} {
		if dir, ok := d[blkio]; ok && c.readBytes == nil {
			name := "blkio." + policy + ".io_service_bytes_recursive"
			text, err := os.ReadFile(filepath.Join(dir, name))
			if read, written, ok := parseBlkio(text, isWholeDisk); err == nil && ok {
				c.readBytes, c.writtenBytes = &read, &written
			}
		}
	}
}

// wholeDisk matches the names of disks. It excludes partitions and stacked devices (device mapper,
// software RAID, loop devices), whose bytes would count twice.
var wholeDisk = regexp.MustCompile(
	`^([hsv]d[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|dasd[a-z]+|pmem\d+|[nr]bd\d+)$`)

// isWholeDisk reports whether a device number is that of a whole disk.
func isWholeDisk(number string) bool {
	if strings.ContainsAny(number, "/.") {
		return false
	}
	device, err := os.Readlink("/sys/dev/block/" + number)
	return err == nil && wholeDisk.MatchString(filepath.Base(device))
}
