package usage

import (
	"bytes"
	"strconv"
)

// process is the part of /proc/<pid>/stat that is used.
type process struct {
	pid, parent, session int

	ticks         uint64 // CPU time of the process and of its reaped children, in clock ticks
	residentPages uint64
	isExiting     bool // it may have left its cgroup
}

// exitingFlag is PF_EXITING of the kernel.
const exitingFlag = 0x4

// parseProcess parses the text of /proc/<pid>/stat. The name in its second field may contain
// spaces and parentheses, so fields are counted from the last parenthesis.
func parseProcess(text []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}
	const firstField = 3 // the state, see proc_pid_stat(5)
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 22 {
		return p, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return p, false
	}

	ok = true
	number := func(field int) uint64 { // counted as in proc_pid_stat(5)
		n, err := strconv.ParseUint(string(fields[field-firstField]), 10, 64)
		ok = ok && err == nil
		return n
	}
	p = process{
		pid:           pid,
		parent:        int(number(4)),
		session:       int(number(6)),
		ticks:         number(14) + number(15) + number(16) + number(17),
		residentPages: number(24),
		isExiting:     number(9)&exitingFlag != 0,
	}
	return p, ok
}

// parseIO parses the text of /proc/<pid>/io. It returns the bytes that were transferred from and
// to storage.
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

// family returns the processes of a job: the first process, its descendants, and processes of its
// session whose parent has ended.
func family(all []process, first int) []process {
	children := map[int][]process{}
	isMember := map[int]bool{}
	var members, unvisited []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == first || p.session == first {
			isMember[p.pid] = true
			unvisited = append(unvisited, p)
		}
	}
	for len(unvisited) > 0 {
		p := unvisited[len(unvisited)-1]
		unvisited = unvisited[:len(unvisited)-1]
		members = append(members, p)
		for _, c := range children[p.pid] {
			if !isMember[c.pid] {
				isMember[c.pid] = true
				unvisited = append(unvisited, c)
			}
		}
	}
	return members
}
