package services

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Yield lets this process wait for others where processors are short: it adds to
// the niceness of each of its threads, and of those that they start. Only Linux knows
// niceness by thread; elsewhere nothing is done and it returns false.
func Yield(niceness int) (bool, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, fmt.Errorf("list own threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, niceness); err != nil && err != unix.ESRCH {
			return false, fmt.Errorf("set niceness of thread %d to %d: %w", id, niceness, err)
		}
	}
	return true, nil
}
