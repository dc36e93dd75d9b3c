package collector

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// mountedCgroups are the hierarchies of this system, read once.
var mountedCgroups = sync.OnceValue(func() []cgroupMount {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseCgroupMounts(string(text))
})

// membershipsOf are those of a process, "self" or its number.
func membershipsOf(process string) []membership {
	text, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return nil
	}
	return parseMemberships(string(text))
}

// candidate is a folder that may be the job's own: it is if strangers are none.
type candidate struct {
	folder   string
	counters []string
	pids     []int
}

// candidatesOf lists the folders of a process. It is to be called before the
// processes are listed to which they are compared: who comes later is in none.
func candidatesOf(pid int) []candidate {
	var all []candidate
	for _, m := range membershipsOf(strconv.Itoa(pid)) {
		counters := m.counters()
		folder, ok := m.folder(mountedCgroups())
		if !ok || len(counters) == 0 {
			continue
		}
		if pids, ok := pidsIn(folder); ok {
			all = append(all, candidate{folder, counters, pids})
		}
	}
	return all
}

// mostFolders bounds how far the cgroups below a job's are looked into.
const mostFolders = 256

// pidsIn returns the processes of a cgroup and of those below it; ok is false if
// they cannot be known.
func pidsIn(folder string) (pids []int, ok bool) {
	folders := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if folders++; folders > mostFolders {
			return fs.SkipAll
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		pids = append(pids, parsePIDs(text)...)
		return err
	})
	return pids, err == nil && folders <= mostFolders
}

// own returns the job's cgroup among the candidates: what was made for it, and
// where none but its members are.
func own(all []candidate, placed group, members []process) group {
	known := map[int]bool{}
	for _, p := range members {
		known[p.pid] = true
	}
	g := group{}
	for _, c := range all {
		for _, counter := range c.counters {
			if placed[counter] == c.folder || alone(c.pids, known) {
				g[counter] = c.folder
			}
		}
	}
	return g
}

// alone reports whether all living processes are known.
func alone(pids []int, known map[int]bool) bool {
	for _, pid := range pids {
		if known[pid] {
			continue
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); pid == 0 || !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return len(pids) > 0
}

// read returns what the cgroup counted so far. Files that are not there, because
// a controller is off or the kernel is old, leave their figures out.
func (g group) read() (usage, map[string]stall) {
	u, pressure := usage{}, map[string]stall{}
	if folder, has := g[onUnified]; has {
		u.readUnified(folder)
		for _, r := range resources {
			if text, err := os.ReadFile(filepath.Join(folder, r+".pressure")); err == nil {
				pressure[r] = parsePressure(text)
			}
		}
	}
	u.readEach(g)
	return u, pressure
}

// readUnified reads the files of v2.
func (u *usage) readUnified(folder string) {
	if text, err := os.ReadFile(filepath.Join(folder, "cpu.stat")); err == nil {
		u.cpuSeconds = scaled(parseKeyed(text), 1e-6, "usage_usec")
	}
	if text, err := os.ReadFile(filepath.Join(folder, "memory.stat")); err == nil {
		u.memoryBytes = scaled(parseKeyed(text), 1, "anon", "file_mapped")
	}
	if text, err := os.ReadFile(filepath.Join(folder, "io.stat")); err == nil {
		if read, written, ok := parseIOStat(text, countedDevice); ok {
			u.readBytes, u.writtenBytes = &read, &written
		}
	}
}

// readEach reads the files of v1 for what v2 did not tell.
func (u *usage) readEach(g group) {
	if folder, has := g[onCPUAcct]; has && u.cpuSeconds == nil {
		if text, err := os.ReadFile(filepath.Join(folder, "cpuacct.usage")); err == nil {
			u.cpuSeconds = scaled(parseKeyed(append([]byte("usage "), text...)), 1e-9, "usage")
		}
	}
	if folder, has := g[onMemory]; has && u.memoryBytes == nil {
		if text, err := os.ReadFile(filepath.Join(folder, "memory.stat")); err == nil {
			u.memoryBytes = scaled(parseKeyed(text), 1, "total_rss", "total_mapped_file")
		}
	}
	for _, policy := range []string{"throttle", "bfq"} { // which of them counts depends on kernel and scheduler
		if folder, has := g[onBlkio]; has && u.readBytes == nil {
			text, err := os.ReadFile(filepath.Join(folder, "blkio."+policy+".io_service_bytes_recursive"))
			if read, written, ok := parseBlkio(text, countedDevice); err == nil && ok {
				u.readBytes, u.writtenBytes = &read, &written
			}
		}
	}
}

// countedDevice reports whether a device number is that of a whole disk: what is
// stacked on disks would count twice.
func countedDevice(number string) bool {
	if strings.ContainsAny(number, "/.") {
		return false
	}
	device, err := os.Readlink("/sys/dev/block/" + number)
	return err == nil && wholeDisk.MatchString(filepath.Base(device))
}
