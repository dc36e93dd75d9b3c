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
	longLife          = 30 * time.Second // a child that lived this long resets the delay
	childStopTimeout  = 8 * time.Second  // within Grace; then the child is killed
)

// ChildOptions describe a child process.
type ChildOptions struct {
	Name   string    // in log lines, and the label "process" of the child's metrics
	Args   []string  // of this program, the sub-command first
	Env    []string  // KEY=VALUE, added to the environment of this process
	Stderr io.Writer // of the child, which logs there itself; nil discards it
}

// Child runs a sub-command of this program in a process of its own, and restarts it
// when it ends unasked. The child calls Supervised: it stops when its standard input
// closes, which happens with Run's context and also when this process is killed. Its
// methods may be called from any goroutine; Run once.
type Child struct {
	o       ChildOptions
	log     *slog.Logger
	metrics *childMetrics
	started chan struct{} // closed when the child has announced itself once

	mu      sync.Mutex
	input   []byte         // last line of SetInput
	stdin   io.WriteCloser // nil while no child runs
	address string         // of the child's HTTP server; empty while it has none
	pid     int
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

// SetInput hands one line to the child, and to every later child when it starts.
func (c *Child) SetInput(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = []byte(line + "\n")
	c.writeInput()
}

// writeInput needs the lock. A line fits into the pipe, so it does not block.
func (c *Child) writeInput() {
	if c.stdin == nil || c.input == nil {
		return
	}
	if _, err := c.stdin.Write(c.input); err != nil {
		c.log.Debug("child does not read its input", "error", err) // the next one gets it
	}
}

// Run starts the child and keeps it running until ctx ends; then it stops it and
// returns nil. It returns an error when the child exits by itself before it has ever
// served HTTP: a restart would not help. Afterwards it is restarted however it ends.
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
		if time.Since(begin) >= longLife {
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

// mayRestart reports whether another start can help: once a child has served, or if a
// signal killed it.
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
	c.writeInput()
	c.mu.Unlock()

	ended := make(chan error, 1)
	go func() {
		c.readAnnouncement(stdout) // until the child closes its end
		ended <- cmd.Wait()
	}()
	select {
	case err = <-ended:
		c.closeInput()
		return fmt.Errorf("child %s ended unasked: %w", c.o.Name, cmp.Or(err, errExited))
	case <-ctx.Done():
		c.closeInput()
		return c.stop(cmd, ended)
	}
}

// errExited stands for the exit status 0.
var errExited = errors.New("exit status 0")

// start starts the process. Its own process group keeps an interrupt that is typed at
// the terminal from it: this process stops it in order.
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

// readAnnouncement learns where the child serves HTTP, and returns when the child has
// closed its standard output.
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
	_, _ = io.Copy(io.Discard, r) // nothing else is expected there
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

// closeInput asks the child to stop, and forgets it.
func (c *Child) closeInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stdin.Close() // the child may have ended
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
	_ = cmd.Process.Kill() // it may have ended at this moment
	return <-ended
}
