package host

import "syscall"

// endWithParent adds nothing: macOS has no parent-death signal. The supervisor
// ends what is left of the process group instead.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}
