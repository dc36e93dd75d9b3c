//go:build !linux

package services

// Yield does nothing on this system and returns false.
func Yield(niceness int) (bool, error) { return false, nil }
