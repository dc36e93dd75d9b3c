//go:build !windows

package mlflow_test

import (
	"os/exec"
	"syscall"
)

// setGroup starts the server in a process group of its own, because it has workers.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = cmd.Wait()
}
