//go:build !linux

package services

// Yield does nothing here; see the one for Linux.
func Yield(niceness int) (bool, error) { return false, nil }
