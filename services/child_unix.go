//go:build unix

package services

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup makes the child ignore signals of the terminal.
func ownProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
