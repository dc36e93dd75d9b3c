package services

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Yield lets this process wait for others where processors are short: it sets the
// niceness of each of its threads, and of those that they start, and has them
// interrupted after a short while when others want to run (Linux 6.12; a niceness alone
// keeps them waiting for milliseconds). With idle it runs only where a processor would
// have nothing else to do. Only Linux knows this by thread; elsewhere nothing is done
// and it returns false.
func Yield(niceness int, idle bool) (bool, error) {
	policy := unix.SchedAttr{
		Policy:  unix.SCHED_NORMAL,
		Nice:    int32(niceness),
		Runtime: uint64(shortSlice),
	}
	if idle {
		policy = unix.SchedAttr{Policy: unix.SCHED_IDLE}
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
		if err == unix.EPERM && !idle { // a sandbox that knows the old call only
			err = unix.Setpriority(unix.PRIO_PROCESS, id, niceness)
		}
		if err != nil && err != unix.ESRCH {
			return false, fmt.Errorf("let thread %d wait for others: %w", id, err)
		}
	}
	return true, nil
}

// shortSlice is the shortest time that Linux gives a thread before another's turn.
const shortSlice = 100 * time.Microsecond
