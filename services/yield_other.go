//go:build !linux

package services

// Yield does nothing here; see the one for Linux.
func Yield(niceness int, idle bool) (bool, error) { return false, nil }
