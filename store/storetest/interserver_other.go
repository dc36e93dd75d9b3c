//go:build !linux || !amd64 || noengine

package storetest

import "errors"

// CanReplicate returns nil if the engines of tests can have replicated tables.
func CanReplicate() error {
	return errors.New("only the library for Linux on x86-64 can replicate tables")
}

func runReplica([]string) int { return 2 }
