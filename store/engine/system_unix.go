//go:build linux || darwin

package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// canSupervise reports whether this system can run an engine.
const canSupervise = true

// tryLock locks an open file, or returns errLocked. The lock ends when every process that inherited
// the file has closed it.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

// detach starts the child in its own session: SYSTEM SHUTDOWN signals the whole process group, and
// an interrupt from the terminal must reach only the supervisor, which then stops the child.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// killGroup kills the child and its process group. It returns nil if no process is left.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
