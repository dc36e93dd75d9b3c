package services

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup keeps Ctrl-C in the console from the child.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
