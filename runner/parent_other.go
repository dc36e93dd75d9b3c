//go:build unix && !linux

package runner

import "syscall"

// endWithParent does nothing: the system has no parent-death signal.
func endWithParent(*syscall.SysProcAttr) {}
