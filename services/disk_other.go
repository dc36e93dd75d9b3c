//go:build !linux

package services

import "errors"

// FreeBytes returns an error: the free space is only known on Linux.
func FreeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
