//go:build linux && amd64 && !noengine

package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopTimeout is the time after which the host exits although the engine has not stopped. A running
// supervisor kills it earlier.
const stopTimeout = 10 * time.Second

// lifetime ends when the supervisor closes its end of the pipe, dies, or sends SIGTERM.
type lifetime struct {
	over chan struct{}
}

func newLifetime(pipe *os.File) (*lifetime, error) {
	info, err := pipe.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil, errors.New("descriptor 3 is not a pipe: " +
			"only `courier all` can start engine-host")
	}
	l := &lifetime{over: make(chan struct{})}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	eof := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, pipe) // any failure is the end, too
		close(eof)
	}()
	go func() {
		select {
		case <-eof:
		case <-term:
		}
		close(l.over)
	}()
	return l, nil
}

func (l *lifetime) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// whenOver waits for the end and then calls requestStop at an interval until the process ends.
// After stopTimeout it exits.
func (l *lifetime) whenOver(interval time.Duration, requestStop func()) {
	<-l.over
	fmt.Fprintln(os.Stderr, "host: stop requested")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	for {
		requestStop()
		select {
		case <-tick.C:
		case <-timeout.C:
			fmt.Fprintln(os.Stderr, "host: the engine did not stop in", stopTimeout)
			os.Exit(exitStuck)
		}
	}
}
