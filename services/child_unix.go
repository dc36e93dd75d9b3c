//go:build unix

package services

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup keeps signals of the terminal from the child.
func ownProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
