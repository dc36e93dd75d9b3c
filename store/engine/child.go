package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// errKilled says that a signal ended the child.
var errKilled = errors.New("killed")

// child is one run of the host.
type child struct {
	pid    int
	pipe   *os.File      // closing it means "stop"
	log    hostLog       // what it prints
	exited chan struct{} // closed when it has ended and state may be read
	state  *os.ProcessState
	server bool
}

// spawn starts the host with this start's settings.
//
//	supervisor ── pipe ──► host: descriptor 3; the supervisor's end closes with it
//	           ── lock ──► host: descriptor 4; locked until both have closed it
func (v *supervisor) spawn() (*child, error) {
	output, log, err := openHostLog(v.settings.hostLog())
	if err != nil {
		return nil, fmt.Errorf("open the host's log: %w", err)
	}
	defer output.Close()
	reading, writing, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the lifetime pipe: %w", err)
	}
	defer reading.Close()
	command := v.hostCommand()
	cmd := exec.Command(command[0], command[1:]...)
	// The engine reads configuration that it finds in either directory.
	cmd.Dir = v.settings.run
	cmd.Env = []string{"HOME=" + v.settings.run, "TERM=dumb", "LC_ALL=C", "TZ=UTC", "PATH=/nonexistent"}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{reading, v.lock.engine}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		writing.Close()
		return nil, fmt.Errorf("start the engine's host: %w", err)
	}
	c := &child{pid: cmd.Process.Pid, pipe: writing, log: log, exited: make(chan struct{}), server: v.settings.server}
	go c.reap(cmd)
	return c, nil
}

// hostCommand is the program, the host's arguments and the engine's.
func (v *supervisor) hostCommand() []string {
	command := append([]string{}, v.options.HostCommand...)
	if v.library.Server {
		command = append(command, "-server", v.library.Path, "--")
	} else {
		command = append(command, "-library", v.library.Path, "-store", v.settings.store, "--")
	}
	return append(command, arguments(v.settings)...)
}

// reap waits for the child's end.
func (c *child) reap(cmd *exec.Cmd) {
	_ = cmd.Wait()     // the state says the same
	_ = c.pipe.Close() // stop may have closed it
	c.state = cmd.ProcessState
	close(c.exited)
}

// stop asks the child to end, and kills it after timeout. It returns when the
// child has ended.
func (c *child) stop(timeout time.Duration) (killed bool, err error) {
	if err := c.pipe.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return false, err
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-c.exited:
		return false, nil
	case <-deadline.C:
	}
	err = killGroup(c.pid)
	<-c.exited
	return true, err
}

// describeExit says how the child ended, with the last thing it said; it is
// errKilled if a signal ended it. The child must have ended.
func (c *child) describeExit() error {
	if c.server {
		// A server whose watcher was killed: on Linux the kernel has ended it too.
		if err := killGroup(c.pid); err != nil {
			return fmt.Errorf("%v; end what is left of it: %w", c.state, err)
		}
	}
	said := ""
	if line := lastLine(c.log.text()); line != "" {
		said = ": " + line
	}
	if c.state.ExitCode() < 0 {
		return fmt.Errorf("%w: %v%s", errKilled, c.state, said)
	}
	return fmt.Errorf("%v%s", c.state, said)
}
