//go:build unix

package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// defaultSize is the size if no output goes to a terminal. It is wide, so that programs that wrap
// their lines do not split the line of an epoch.
var defaultSize = windowSize{rows: 50, columns: 200}

// sizeOf returns the size of the first terminal among the files.
func sizeOf(files ...any) windowSize {
	for _, f := range files {
		f, isFile := f.(*os.File)
		if !isFile || f == nil {
			continue
		}
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return windowSize{rows: uint16(rows), columns: uint16(columns)}
		}
	}
	return defaultSize
}

// isolate puts the command into its own session, so that signals reach it and its children only
// through this process. A pseudo terminal becomes the terminal of the session. Standard input is
// unchanged. On Linux the command is killed when this process is killed.
func isolate(cmd *exec.Cmd, usePTY bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	endWithParent(cmd.SysProcAttr)
	if usePTY {
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 1
	}
}

// openTerminal sets a pseudo terminal as the output of the command, and returns the child's end.
// The terminal is in raw mode, because the terminal of this process translates line breaks.
func (p *jobProcess) openTerminal(size windowSize) ([]*os.File, error) {
	parentEnd, childEnd, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	if _, err = term.MakeRaw(int(childEnd.Fd())); err == nil {
		p.terminal, err = withDeadlines(parentEnd)
	}
	if err != nil {
		err = fmt.Errorf("set up a pseudo terminal: %w", err)
		return nil, errors.Join(err, parentEnd.Close(), childEnd.Close())
	}
	p.streams = []*os.File{p.terminal}
	p.cmd.Stdout, p.cmd.Stderr = childEnd, childEnd
	p.resize(size)
	return []*os.File{childEnd}, nil
}

// withDeadlines returns a copy of the file that supports deadlines, and closes the original.
func withDeadlines(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), f.Close()
}

// resize sets the size of the job's terminal. The kernel sends SIGWINCH to the job.
func (p *jobProcess) resize(size windowSize) {
	if p.terminal == nil {
		return
	}
	raw, err := p.terminal.SyscallConn()
	if err != nil {
		return // it is closed because the job has ended
	}
	_ = raw.Control(func(fd uintptr) { // a wrong size affects only the layout of the output
		winsize := &unix.Winsize{Row: size.rows, Col: size.columns}
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, winsize)
	})
}

// forwardedSignals are forwarded to the job instead of stopping this process; SIGPIPE cancels it.
var forwardedSignals = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE,
}

// notifyResize requests a signal when the terminal of this process is resized.
func notifyResize(c chan<- os.Signal) { signal.Notify(c, unix.SIGWINCH) }

// isResize reports whether the terminal of this process was resized.
func isResize(s os.Signal) bool { return s == unix.SIGWINCH }

// isUnread reports whether the reader of the output has ended, as in courier run … | head.
func isUnread(s os.Signal) bool { return s == unix.SIGPIPE }

// isTermination reports whether the signal asks a program to end.
func isTermination(s os.Signal) bool {
	return s != unix.SIGUSR1 && s != unix.SIGUSR2 && !isResize(s)
}

// signal sends a signal to the job's process group.
func (p *jobProcess) signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v has no number", s)
	}
	return unix.Kill(-p.cmd.Process.Pid, number)
}

// terminate asks the job's process group to end.
func (p *jobProcess) terminate() error { return p.signal(unix.SIGTERM) }

// kill ends the job's process group.
func (p *jobProcess) kill() error { return p.signal(unix.SIGKILL) }

// exitStatus returns the exit status as a shell does, which is 128 + number for a signal, with a
// description.
func exitStatus(state *os.ProcessState) (code int, reason string) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), "ended by signal " + unix.SignalName(status.Signal())
	}
	return state.ExitCode(), fmt.Sprintf("exit status %d", state.ExitCode())
}
