package host

import "syscall"

// endWithParent does nothing: macOS has no parent-death signal. The supervisor kills the process
// group instead.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}
