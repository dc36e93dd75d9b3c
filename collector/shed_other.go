//go:build !linux

package collector

import "runtime/debug"

// Shed gives back memory that only the start of the program needed.
func Shed() { debug.FreeOSMemory() }
