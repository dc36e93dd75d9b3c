package collector

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shed gives back memory that only the start of the program needed: unused heap,
// and pages of the program file, of which each package's initialisation touches
// some. What is needed again is read again, from the system's cache. It is for a
// process that does little from then on, and changes nothing but its size.
func Shed() {
	dropPages() // before the collection of garbage adds some
	debug.FreeOSMemory()
	dropPages()
}

// dropPages forgets what is mapped of the program file.
func dropPages() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range programMappings(string(maps), program) {
		// Refused, it stays as large as it was.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.until-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, until uintptr }

// programMappings finds the parts of the program file in the text of
// /proc/<pid>/maps that cannot be written, so that the file has every byte of them.
func programMappings(maps, program string) []mapping {
	var all []mapping
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) < 6 || len(fields[1]) != 4 || fields[1][1] != '-' || fields[1][3] != 'p' || !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+program) {
			continue
		}
		from, until, _ := strings.Cut(fields[0], "-")
		begin, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			continue
		}
		if end, err := strconv.ParseUint(until, 16, 64); err == nil && end > begin {
			all = append(all, mapping{uintptr(begin), uintptr(end)})
		}
	}
	return all
}
