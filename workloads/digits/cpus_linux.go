package digits

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// allowedCPUs returns the number of CPUs that the calling thread may use now. It differs from
// runtime.NumCPU if the process was pinned after its start.
func allowedCPUs() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}
