package host

import "syscall"

// endWithParent lets the kernel end the server when this process is killed.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
