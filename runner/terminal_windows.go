package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// sizeOf is not used, because jobs run on pipes.
func sizeOf(...any) windowSize { return windowSize{} }

// isolate puts the command into its own process group.
func isolate(cmd *exec.Cmd, _ bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// openTerminal returns an error, so that the job runs on pipes.
func (p *jobProcess) openTerminal(windowSize) ([]*os.File, error) {
	return nil, errors.New("pseudo terminals are not supported on Windows")
}

func (p *jobProcess) resize(windowSize) {}

// forwardedSignals are forwarded to the job instead of stopping this process.
var forwardedSignals = []os.Signal{os.Interrupt}

func notifyResize(chan<- os.Signal) {}

func isResize(os.Signal) bool { return false }

func isUnread(os.Signal) bool { return false }

func isTermination(os.Signal) bool { return true }

// signal ends the job, because Windows cannot send another signal to a process group.
func (p *jobProcess) signal(os.Signal) error { return p.kill() }

// terminate ends the job.
func (p *jobProcess) terminate() error { return p.kill() }

// kill ends the job.
func (p *jobProcess) kill() error { return p.cmd.Process.Kill() }

// exitStatus returns the exit status with a description.
func exitStatus(state *os.ProcessState) (code int, reason string) {
	return state.ExitCode(), fmt.Sprintf("exit status %d", state.ExitCode())
}
