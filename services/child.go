package services

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	firstRestartDelay = 100 * time.Millisecond // doubles with each failure
	maxRestartDelay   = 10 * time.Second
	stableRuntime     = 30 * time.Second // a child that ran this long resets the delay
	childStopTimeout  = 8 * time.Second  // within Grace; then the child is killed
)

// ChildOptions are the options of a child process.
type ChildOptions struct {
	Name   string    // name in log lines, and the label "process" of the child's metrics
	Args   []string  // sub-command of this program, with its flags
	Env    []string  // KEY=VALUE, added to the environment of this process
	Stderr io.Writer // receives the standard error of the child; nil: discarded
}

// Child runs a sub-command of this program in a separate process, and restarts it when it ends
// unexpectedly. The sub-command must call Supervised. Then it stops when its standard input closes:
// when the context of Run ends, and also when this process is killed. Run may be called once; all
// other methods may be called at any time from any goroutine.
type Child struct {
	o       ChildOptions
	log     *slog.Logger
	metrics *childMetrics
	started chan struct{} // closed after the first announcement of a child

	announced sync.Once // closes started

	mu      sync.Mutex
	address string // address of the child's HTTP server; empty while there is none
	pid     int    // process ID of the child; 0 while no child runs
}

// announcement is the first line on a child's standard output.
type announcement struct {
	HTTPAddress string `json:"http_address"`
}

// NewChild returns a child that does not run yet. reg may be nil.
func NewChild(o ChildOptions, log *slog.Logger, reg prometheus.Registerer) *Child {
	return &Child{
		o:       o,
		log:     log.With("child", o.Name),
		metrics: newChildMetrics(o.Name, reg),
		started: make(chan struct{}),
	}
}

// Started returns a channel that is closed when the child serves HTTP for the first time.
func (c *Child) Started() <-chan struct{} { return c.started }

// PID returns the process ID of the running child; 0 while there is none.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Run keeps a child running until ctx ends; then it stops the child and returns nil. It returns an
// error if the first child exits before it serves HTTP, because a restart would not help. Later,
// Run restarts the child regardless of how it ends.
func (c *Child) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		begin := time.Now()
		err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !c.mayRestart(err) {
			return err
		}
		if time.Since(begin) >= stableRuntime {
			failures = 0
		}
		delay := min(firstRestartDelay<<min(failures, 10), maxRestartDelay)
		c.metrics.restarts.Inc()
		c.log.Warn("child ended and is restarted", "error", err, "delay_seconds", delay.Seconds())
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil
		}
	}
}

// mayRestart reports whether a restart can help: a child has served HTTP before, or a signal killed
// this one.
func (c *Child) mayRestart(err error) bool {
	select {
	case <-c.started:
		return true
	default:
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && !exit.Exited()
}

// runOnce runs one child from its start to its end. The child has its own process group. So it does
// not receive an interrupt that is typed at the terminal, and this process stops it in the right order:
// by closing its standard input, and after childStopTimeout by killing it.
func (c *Child) runOnce(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start child %s: %w", c.o.Name, err)
	}
	cmd := exec.CommandContext(ctx, program, c.o.Args...)
	cmd.Env = append(os.Environ(), c.o.Env...)
	cmd.Stderr = c.o.Stderr
	cmd.WaitDelay = childStopTimeout
	ownProcessGroup(cmd)
	stdin, failedIn := cmd.StdinPipe()
	stdout, failedOut := cmd.StdoutPipe()
	cmd.Cancel = func() error { return stdin.Close() }
	if err := cmp.Or(failedIn, failedOut); err != nil {
		return fmt.Errorf("start child %s: %w", c.o.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start child %s: %w", c.o.Name, err)
	}
	c.set("", cmd.Process.Pid)
	c.readAnnouncement(stdout, cmd.Process.Pid) // It returns when the child closes its output.
	err = cmd.Wait()
	c.set("", 0)
	if ctx.Err() != nil && !cmd.ProcessState.Exited() {
		c.log.Warn("child did not stop and was killed", "after_seconds", childStopTimeout.Seconds())
	}
	return fmt.Errorf("child %s ended unexpectedly: %w", c.o.Name, cmp.Or(err, errExited))
}

// errExited is the error of a child that ended with status 0.
var errExited = errors.New("exit status 0")

// set sets the HTTP address and the process ID of the child.
func (c *Child) set(address string, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address, c.pid = address, pid
	c.metrics.up.Set(0)
	if address != "" {
		c.metrics.up.Set(1)
	}
}

// readAnnouncement reads the HTTP address of the child, and returns when the child has closed its
// standard output.
func (c *Child) readAnnouncement(stdout io.Reader, pid int) {
	r := bufio.NewReader(stdout)
	line, err := r.ReadBytes('\n')
	var a announcement
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil {
		c.set(a.HTTPAddress, pid)
		c.announced.Do(func() { close(c.started) })
	} else {
		c.log.Debug("child announced no address", "error", err)
	}
	_, _ = io.Copy(io.Discard, r) // A child prints nothing else.
}
