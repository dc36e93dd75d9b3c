package runner

import "syscall"

// endWithParent kills the process when the thread that has started it ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
