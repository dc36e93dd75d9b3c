package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// firstRestartDelay is the delay after the first failure. It doubles with each failure.
	firstRestartDelay = 100 * time.Millisecond
	// stableTime is the time after which a running child resets the number of failures.
	stableTime = 30 * time.Second
	// maxKilledStarts bounds the restarts of a child that is killed before it has answered once.
	maxKilledStarts = 5
)

func (v *supervisor) supervise(ctx context.Context) error {
	for {
		err := v.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !v.mayRestart(err) {
			return err
		}
		delay := restartDelay(v.failures, v.options.MaxRestartDelay)
		v.failures++
		v.metrics.restarts.Inc()
		v.log.Warn("engine will be restarted", "reason", err.Error(), "delay_seconds", delay.Seconds())
		pause := time.NewTimer(delay)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

func restartDelay(failures int, maxDelay time.Duration) time.Duration {
	return min(firstRestartDelay<<min(failures, 20), maxDelay)
}

// mayRestart reports whether the engine has answered before, or the child was killed.
func (v *supervisor) mayRestart(err error) bool {
	return v.hasAnswered || errors.Is(err, errKilled) && v.failures+1 < maxKilledStarts
}

// runOnce starts a child, waits until it answers, and then until it or ctx ends. It never returns
// while the child runs.
func (v *supervisor) runOnce(ctx context.Context) error {
	started := time.Now()
	if err := v.prepare(); err != nil {
		return err
	}
	c, err := v.spawn()
	if err != nil {
		return err
	}
	endpoint, err := v.awaitReady(ctx, c)
	if err != nil {
		return errors.Join(err, v.endChild(ctx, c))
	}
	readyAt := time.Now()
	v.setReady(endpoint, c, readyAt.Sub(started))

	select {
	case <-c.exited:
	case <-ctx.Done():
	}
	v.readiness.set(Connection{}, false, nil)
	v.metrics.up.Set(0)
	if ctx.Err() != nil {
		return v.endChild(ctx, c)
	}
	if time.Since(readyAt) >= stableTime {
		v.failures = 0
	}
	return fmt.Errorf("the engine ended unexpectedly: %w", c.describeExit())
}

// prepare checks the ports, because the engine also runs without a listener and another program may
// answer on the port. Then it writes the configuration files.
func (v *supervisor) prepare() error {
	for _, port := range []int{v.settings.HTTPPort, v.settings.TCPPort} {
		if err := checkPort(port); err != nil {
			return err
		}
	}
	v.settings.Nonce = "courier-" + strings.ToLower(rand.Text())
	if err := os.Remove(v.settings.portsPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the ports of the last start: %w", err)
	}

	config, err := render(configTemplate, v.settings)
	if err != nil {
		return fmt.Errorf("generate config.xml: %w", err)
	}
	users, err := render(usersTemplate, v.settings)
	if err != nil {
		return fmt.Errorf("generate users.xml: %w", err)
	}
	err = errors.Join(writeFile(v.settings.configPath(), config), writeFile(v.settings.usersPath(), users))
	if err != nil {
		return fmt.Errorf("write the engine's configuration: %w", err)
	}
	return nil
}

func (v *supervisor) setReady(p Connection, c *hostProcess, took time.Duration) {
	v.hasAnswered = true
	v.metrics.up.Set(1)
	v.log.Info("engine ready", "engine", p, "library", v.library, "start_seconds", took.Seconds())
	if reason := unconfined(c.log.text()); reason != "" {
		v.log.Warn("engine is not confined: its users can read the files of this user", "reason", reason)
	}
	v.readiness.set(p, true, nil)
}

// endChild stops a child. If ctx has not ended, the child has failed to start and is killed.
func (v *supervisor) endChild(ctx context.Context, c *hostProcess) error {
	timeout := v.options.StopTimeout
	if ctx.Err() == nil {
		timeout = 0
	}
	killed, err := c.stop(timeout)
	if killed && timeout > 0 {
		v.log.Warn("engine did not stop and was killed", "after_seconds", timeout.Seconds())
	}
	return err
}

type supervisor struct {
	*Engine
	library     string
	lock        *dataLock
	settings    settings // ports and nonce change with each start
	hasAnswered bool     // at least once
	failures    int      // in a row
}

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

	command := slices.Concat(v.options.HostCommand,
		[]string{"-library", v.library, "-store", v.settings.Store, "--"}, arguments(v.settings))
	cmd := exec.Command(command[0], command[1:]...)
	// The engine reads configuration files in its working and home directories.
	cmd.Dir = v.settings.Run
	cmd.Env = []string{
		"HOME=" + v.settings.Run,
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

func (c *hostProcess) reap(cmd *exec.Cmd) {
	_ = cmd.Wait()     // ProcessState has the result
	_ = c.pipe.Close() // stop may have closed it
	c.state = cmd.ProcessState
	close(c.exited)
}

// stop requests the end of the child, kills it after a timeout, and waits for its end.
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

// maxHostLogBytes is the size at which a start rotates the log. One old log is kept.
const maxHostLogBytes = 1 << 20

// hostLog is the output of a child: the lines of the host and the console of the engine. The output
// of earlier children precedes offset.
type hostLog struct {
	path   string
	offset int64
}

func openHostLog(path string) (*os.File, hostLog, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxHostLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, hostLog{}, fmt.Errorf("rotate the host's log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, hostLog{}, err
	}
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		file.Close()
		return nil, hostLog{}, err
	}
	return file, hostLog{path: path, offset: offset}, nil
}

// text returns at most 64 KiB of the child's output, or "" if the log cannot be read.
func (l hostLog) text() string {
	file, err := os.Open(l.path)
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, l.offset, 64<<10))
	if err != nil {
		return ""
	}
	return string(bytes.ToValidUTF8(content, []byte("?")))
}

var exceptionPattern = regexp.MustCompile(`(?m)^Code: \d+\. DB::\w*Exception: .*$`)

func exception(log string) string {
	return strings.TrimSpace(exceptionPattern.FindString(log))
}

var escapePattern = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x08\x0b-\x1f]`)

func lastLine(log string) string {
	lines := strings.Split(escapePattern.ReplaceAllString(log, ""), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return strings.TrimPrefix(line, "host: ")
		}
	}
	return ""
}

var unconfinedPattern = regexp.MustCompile(`(?m)^host: not confined: (.*)$`)

// unconfined returns the reason why the child is not confined, or "".
func unconfined(log string) string {
	if m := unconfinedPattern.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}
