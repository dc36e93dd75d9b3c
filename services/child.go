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

	mu      sync.Mutex
	stdin   io.WriteCloser // standard input of the child; nil while no child runs
	address string         // address of the child's HTTP server; empty while there is none
	pid     int            // process ID of the child; 0 while no child runs
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
	var exit *exec.ExitError
	return errors.As(err, &exit) && !exit.Exited()
}

// runOnce runs one child from its start to its end.
func (c *Child) runOnce(ctx context.Context) error {
	cmd, stdin, stdout, err := c.start()
	if err != nil {
		return fmt.Errorf("start child %s: %w", c.o.Name, err)
	}
	c.mu.Lock()
	c.stdin, c.pid = stdin, cmd.Process.Pid
	c.mu.Unlock()

	ended := make(chan error, 1)
	go func() {
		c.readAnnouncement(stdout) // It returns when the child closes its output.
		ended <- cmd.Wait()
	}()
	select {
	case err = <-ended:
		c.closeInput()
		return fmt.Errorf("child %s ended unexpectedly: %w", c.o.Name, cmp.Or(err, errExited))
	case <-ctx.Done():
		c.closeInput()
		return c.stop(cmd, ended)
	}
}

// errExited is the error of a child that ended with status 0.
var errExited = errors.New("exit status 0")

// start starts the process in its own process group. So it does not receive an interrupt that is
// typed at the terminal, and this process stops it in the right order.
func (c *Child) start() (cmd *exec.Cmd, stdin io.WriteCloser, stdout io.Reader, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(program, c.o.Args...)
	cmd.Env = append(os.Environ(), c.o.Env...)
	cmd.Stderr = c.o.Stderr
	ownProcessGroup(cmd)
	if stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, stdin, stdout, cmd.Start()
}

// readAnnouncement reads the HTTP address of the child, and returns when the child has closed its
// standard output.
func (c *Child) readAnnouncement(stdout io.Reader) {
	r := bufio.NewReader(stdout)
	line, err := r.ReadBytes('\n')
	var a announcement
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil {
		c.announced(a)
	} else {
		c.log.Debug("child announced no address", "error", err)
	}
	_, _ = io.Copy(io.Discard, r) // A child prints nothing else.
}

func (c *Child) announced(a announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address = a.HTTPAddress
	c.metrics.up.Set(1)
	select {
	case <-c.started:
	default:
		close(c.started)
	}
}

// closeInput closes the standard input of the child, which makes it stop.
func (c *Child) closeInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stdin.Close() // The child may have ended already.
	c.stdin, c.address, c.pid = nil, "", 0
	c.metrics.up.Set(0)
}

// stop waits for the child, and kills it after childStopTimeout.
func (c *Child) stop(cmd *exec.Cmd, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(childStopTimeout):
	}
	c.log.Warn("child did not stop and is killed", "after_seconds", childStopTimeout.Seconds())
	_ = cmd.Process.Kill() // It may just have ended.
	return <-ended
}
