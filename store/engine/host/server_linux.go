package host

import "syscall"

// endWithParent makes the kernel kill the server when this process ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
