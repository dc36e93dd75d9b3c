package collector

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func threadCPUTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // it cannot fail for this thread
	}
	return time.Duration(t.Nano())
}

// ReleaseMemory releases memory that only the start of the program needed: the unused heap, and
// pages of the program file, which the initialization of every package reads. Pages that are needed
// again are read from the page cache. Use it in a process that does little after its start.
func ReleaseMemory() {
	releaseProgramPages() // before the garbage collection reads some of them again
	debug.FreeOSMemory()
	releaseProgramPages()
}

func releaseProgramPages() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, r := range programRanges(string(maps), program) {
		// After a failure, the pages stay in memory.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED)
	}
}

type addressRange struct{ start, end uintptr }

// programRanges returns the read-only private mappings of the program file in the text of
// /proc/<pid>/maps. Their pages can be released, because the file has the same content.
func programRanges(maps, program string) []addressRange {
	var ranges []addressRange
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		isProgram := strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+program)
		if len(fields) < 6 || !isProgram || !isReadOnlyPrivate(fields[1]) {
			continue
		}
		startText, endText, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(startText, 16, 64)
		if err != nil {
			continue
		}
		if end, err := strconv.ParseUint(endText, 16, 64); err == nil && end > start {
			ranges = append(ranges, addressRange{uintptr(start), uintptr(end)})
		}
	}
	return ranges
}

// isReadOnlyPrivate reports whether a mapping has permissions such as "r-xp".
func isReadOnlyPrivate(permissions string) bool {
	return len(permissions) == 4 && permissions[1] == '-' && permissions[3] == 'p'
}
