//go:build unix

package collector

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// windowSize is the size of a terminal.
type windowSize struct{ rows, columns uint16 }

// defaultSize is that of a job whose output goes to no terminal. It is wide, so
// that programs that fold their lines leave those of an epoch whole.
var defaultSize = windowSize{rows: 50, columns: 200}

// sizeOf returns the size of the first terminal among the files.
func sizeOf(files ...any) windowSize {
	for _, f := range files {
		if f, ok := f.(*os.File); ok && f != nil {
			if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
				return windowSize{rows: uint16(rows), columns: uint16(columns)}
			}
		}
	}
	return defaultSize
}

// isolate puts the command into a session of its own, so that signals reach it
// and its children through us alone. On a pseudo terminal that is the session's
// terminal; standard input stays what it is.
func isolate(cmd *exec.Cmd, usePTY bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if usePTY {
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 1
	}
}

// openTerminal gives the command a pseudo terminal as output and returns its
// end of it. It passes bytes as they are: a terminal that we write to, or none,
// treats line ends itself.
func (c *command) openTerminal(size windowSize) ([]*os.File, error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	if _, err = term.MakeRaw(int(theirs.Fd())); err == nil {
		c.terminal, err = pollable(ours)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up a pseudo terminal: %w", err), ours.Close(), theirs.Close())
	}
	c.streams = []*os.File{c.terminal}
	c.cmd.Stdout, c.cmd.Stderr = theirs, theirs
	c.resize(size)
	return []*os.File{theirs}, nil
}

// pollable returns the file with deadlines, which opening it took away, and
// closes the original.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), f.Close()
}

// resize tells the job the size of its terminal; the kernel sends it SIGWINCH.
func (c *command) resize(size windowSize) {
	if c.terminal == nil {
		return
	}
	raw, err := c.terminal.SyscallConn()
	if err != nil {
		return // closed: the job has ended
	}
	_ = raw.Control(func(fd uintptr) { // a wrong size spoils nothing but looks
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.rows, Col: size.columns})
	})
}

// forwarded are the signals that go to the job instead of ending us.
var forwarded = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// notifyResize asks for a signal when our terminal changes its size.
func notifyResize(c chan<- os.Signal) { signal.Notify(c, unix.SIGWINCH) }

// isResize tells a change of size from the signals for the job.
func isResize(s os.Signal) bool { return s == unix.SIGWINCH }

// ends reports whether the signal asks a program to end.
func ends(s os.Signal) bool { return s != unix.SIGUSR1 && s != unix.SIGUSR2 && !isResize(s) }

// signal sends a signal to the job's whole process group.
func (c *command) signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v has no number", s)
	}
	return unix.Kill(-c.cmd.Process.Pid, number)
}

// terminate asks the job to end, and kill ends it.
func (c *command) terminate() error { return c.signal(unix.SIGTERM) }
func (c *command) kill() error      { return c.signal(unix.SIGKILL) }

// exitStatus returns the command's exit status as a shell would, 128 + number
// for one that a signal ended, and the reason in words.
func exitStatus(state *os.ProcessState) (code int, reason string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), "ended by signal " + unix.SignalName(ws.Signal())
	}
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
