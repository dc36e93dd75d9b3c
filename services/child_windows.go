package services

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup makes the child ignore Ctrl-C in the console.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
