//go:build !linux

package collector

import "runtime/debug"

// ReleaseMemory releases memory that only the start of the program needed.
func ReleaseMemory() { debug.FreeOSMemory() }
