package collector

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/term"
)

// windowSize is the size of a terminal.
type windowSize struct{ rows, columns uint16 }

// sizeOf has no use here: jobs run on pipes.
func sizeOf(...any) windowSize { return windowSize{} }

// isolate puts the command into a process group of its own.
func isolate(cmd *exec.Cmd, _ bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// openTerminal fails: the caller takes pipes.
func (c *command) openTerminal(windowSize) ([]*os.File, error) {
	return nil, errors.New("no pseudo terminal on windows")
}

func (c *command) resize(windowSize) {}

// forwarded are the signals that go to the job instead of ending us.
var forwarded = []os.Signal{os.Interrupt}

func notifyResize(chan<- os.Signal) {}
func isResize(os.Signal) bool       { return false }
func ends(os.Signal) bool           { return true }

// signal ends the command: Windows has no gentler way to reach a group.
func (c *command) signal(os.Signal) error { return c.kill() }

// terminate and kill end the command.
func (c *command) terminate() error { return c.kill() }
func (c *command) kill() error      { return c.cmd.Process.Kill() }

// exitStatus returns the command's exit status and the reason in words.
func exitStatus(state *os.ProcessState) (code int, reason string) {
	return state.ExitCode(), fmt.Sprintf("exit status %d", state.ExitCode())
}

// columnsOf returns the width of the terminal that w is; ok is false for none.
func columnsOf(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || f == nil {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	return columns, err == nil
}
