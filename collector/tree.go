package collector

import (
	"bytes"
	"strconv"
)

// usage is what a job's processes took so far. What is not known is nil.
type usage struct {
	cpuSeconds   *float64 // user and system time
	memoryBytes  *float64 // resident now; pages that processes share count in each
	readBytes    *float64 // from storage
	writtenBytes *float64 // to storage
}

// nothingUsed is the usage of a job before its start.
func nothingUsed() usage {
	return usage{cpuSeconds: new(float64), readBytes: new(float64), writtenBytes: new(float64)}
}

// since returns the usage between an earlier one and u: differences of what
// counts up, and memory as it is now. A count that went back, because a process
// ended that nobody of the job waited for, is not known.
func (u usage) since(earlier usage) usage {
	return usage{cpuSeconds: difference(earlier.cpuSeconds, u.cpuSeconds), memoryBytes: u.memoryBytes,
		readBytes: difference(earlier.readBytes, u.readBytes), writtenBytes: difference(earlier.writtenBytes, u.writtenBytes)}
}

func difference(before, after *float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	d := *after - *before
	return &d
}

// process is a line of /proc/<pid>/stat.
type process struct {
	pid, parent, session int
	ticks                uint64 // CPU time of it and of the children it waited for, in clock ticks
	residentPages        uint64
	childFaults          uint64 // page faults of the children it waited for: grows with each
	exiting              bool   // it ends, and has left cgroups of v1 already
	delayTicks           uint64 // in which it, as a thread, waited for storage; 0 if the kernel does not count
}

// exitingFlag is PF_EXITING of the kernel.
const exitingFlag = 0x4

// parseProcess reads the text of /proc/<pid>/stat. The name in its second field
// may hold spaces and parentheses, so fields are counted from the last one.
func parseProcess(text []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}
	fields := bytes.Fields(text[end+1:]) // from the third field of proc_pid_stat(5), the state
	if len(fields) < 22 {
		return p, false
	}
	number := func(field int) uint64 { // counted as in the manual
		n, err := strconv.ParseUint(string(fields[field-3]), 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return p, false
	}
	p = process{pid: pid, parent: int(number(4)), session: int(number(6)),
		ticks: number(14) + number(15) + number(16) + number(17), residentPages: number(24), childFaults: number(11), exiting: number(9)&exitingFlag != 0}
	if len(fields) > 42-3 {
		p.delayTicks = number(42)
	}
	return p, ok
}

// parseIO reads the text of /proc/<pid>/io: bytes that storage really moved.
func parseIO(text []byte) (read, written float64, ok bool) {
	found := 0
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		if err != nil {
			continue
		}
		switch string(name) {
		case "read_bytes":
			read, found = float64(n), found+1
		case "write_bytes":
			written, found = float64(n), found+1
		}
	}
	return read, written, found == 2
}

// family returns the processes of a job: the first one, its descendants, and
// whoever is still in its session after a parent between them ended.
func family(all []process, first int) []process {
	children := map[int][]process{}
	member := map[int]bool{}
	var members, look []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == first || p.session == first {
			member[p.pid] = true
			look = append(look, p)
		}
	}
	for len(look) > 0 {
		p := look[len(look)-1]
		look, members = look[:len(look)-1], append(members, p)
		for _, c := range children[p.pid] {
			if !member[c.pid] {
				member[c.pid] = true
				look = append(look, c)
			}
		}
	}
	return members
}

// waits is how long the living threads of a job waited for storage.
type waits struct {
	seconds     map[int]float64 // by thread
	childFaults uint64          // of the processes that ended and were waited for
}

// waitedBetween sums what each thread waited between two instants. It is not
// known if a thread or process ended meanwhile: what it waited is lost with it.
func waitedBetween(before, after *waits) *float64 {
	if before == nil || after == nil || before.childFaults != after.childFaults {
		return nil
	}
	for thread, seconds := range before.seconds {
		if now, lives := after.seconds[thread]; !lives || now < seconds {
			return nil
		}
	}
	sum := 0.0
	for thread, seconds := range after.seconds {
		sum += seconds - before.seconds[thread]
	}
	return &sum
}
