package services

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Yield lowers the priority of this process. It sets the niceness of all threads, which new threads
// inherit, and the shortest time slice. A short slice lets other processes run at once (since Linux
// 6.12); with a niceness alone they wait for milliseconds. Yield returns false on other systems, where it
// does nothing.
func Yield(niceness int) (bool, error) {
	policy := unix.SchedAttr{
		Policy:  unix.SCHED_NORMAL,
		Nice:    int32(niceness),
		Runtime: uint64(shortSlice),
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, fmt.Errorf("list own threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		err = unix.SchedSetAttr(id, &policy, 0)
		if err == unix.EPERM { // A sandbox may only permit the older call.
			err = unix.Setpriority(unix.PRIO_PROCESS, id, niceness)
		}
		if err != nil && err != unix.ESRCH {
			return false, fmt.Errorf("lower the priority of thread %d: %w", id, err)
		}
	}
	return true, nil
}

// shortSlice is the shortest time slice that Linux accepts.
const shortSlice = 100 * time.Microsecond
