//go:build !linux

package digits

import "runtime"

// allowedCPUs returns the number of CPUs.
func allowedCPUs() int { return runtime.NumCPU() }
