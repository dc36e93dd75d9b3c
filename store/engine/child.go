package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// supervisor is one call of Run that has locked the data directory.
type supervisor struct {
	*Engine
	library     string
	lock        *dataLock
	settings    settings // ports and nonce change with each start
	hasAnswered bool     // at least once
	failures    int      // in a row
}

// errKilled reports that a signal ended the child.
var errKilled = errors.New("killed")

type hostProcess struct {
	pid    int
	pipe   *os.File         // closing it requests the stop
	log    hostLog          // its output
	exited chan struct{}    // closed when it has ended
	state  *os.ProcessState // valid when exited is closed
}

// spawn starts the host with the current settings.
//
//	supervisor ── pipe ──► host: descriptor 3; the supervisor's end closes with it
//	           ── lock ──► host: descriptor 4; locked until both have closed it
func (v *supervisor) spawn() (*hostProcess, error) {
	output, log, err := openHostLog(v.settings.hostLog())
	if err != nil {
		return nil, fmt.Errorf("open the host's log: %w", err)
	}
	defer output.Close()
	reading, writing, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create the lifetime pipe: %w", err)
	}
	defer reading.Close()

	command := v.hostCommand()
	cmd := exec.Command(command[0], command[1:]...)
	// The engine reads configuration files in its working and home directories.
	cmd.Dir = v.settings.run
	cmd.Env = []string{
		"HOME=" + v.settings.run,
		"TERM=dumb",
		"LC_ALL=C",
		"TZ=UTC",
		"PATH=/nonexistent",
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{reading, v.lock.engine}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		writing.Close()
		return nil, fmt.Errorf("start the engine's host: %w", err)
	}

	c := &hostProcess{
		pid:    cmd.Process.Pid,
		pipe:   writing,
		log:    log,
		exited: make(chan struct{}),
	}
	go c.reap(cmd)
	return c, nil
}

func (v *supervisor) hostCommand() []string {
	command := append(slices.Clone(v.options.HostCommand),
		"-library", v.library, "-store", v.settings.store, "--")
	return append(command, arguments(v.settings)...)
}

func (c *hostProcess) reap(cmd *exec.Cmd) {
	_ = cmd.Wait()     // ProcessState has the result
	_ = c.pipe.Close() // stop may have closed it
	c.state = cmd.ProcessState
	close(c.exited)
}

// stop requests the end of the child, and kills it after a timeout. It returns when the child has
// ended.
func (c *hostProcess) stop(timeout time.Duration) (killed bool, err error) {
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

// describeExit returns an error with the exit state and the last line of the child, which must
// have ended. The error matches errKilled if a signal ended it.
func (c *hostProcess) describeExit() error {
	suffix := ""
	if line := lastLine(c.log.text()); line != "" {
		suffix = ": " + line
	}
	if c.state.ExitCode() < 0 {
		return fmt.Errorf("%w: %v%s", errKilled, c.state, suffix)
	}
	return fmt.Errorf("%v%s", c.state, suffix)
}
