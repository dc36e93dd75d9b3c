//go:build linux || darwin

package host

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// giveUpAfter is how long an engine may take to stop before the host ends the
// process under it. The supervisor kills sooner; this is for when it is gone.
const giveUpAfter = 10 * time.Second

// lifetime tells when this process has to end: the supervisor closed its end of
// the pipe (or died, which closes it too), or sent SIGTERM.
type lifetime struct {
	over chan struct{}
}

// newLifetime begins to watch pipe, which must be the reading end of one.
func newLifetime(pipe *os.File) (*lifetime, error) {
	info, err := pipe.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil, fmt.Errorf("engine-host is started by `courier all`, not by hand: descriptor 3 is no pipe")
	}
	l := &lifetime{over: make(chan struct{})}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		buffer := make([]byte, 64)
		for {
			if _, err := pipe.Read(buffer); err != nil {
				return
			}
		}
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

// ended says whether the end has been asked for.
func (l *lifetime) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// whenOver waits for the end and then asks the engine to stop, again and again,
// until the process has ended; after giveUpAfter it ends it itself.
func (l *lifetime) whenOver(every time.Duration, ask func()) {
	<-l.over
	fmt.Fprintln(os.Stderr, "host: stop requested")
	again := time.NewTicker(every)
	defer again.Stop()
	giveUp := time.NewTimer(giveUpAfter)
	defer giveUp.Stop()
	for {
		ask()
		select {
		case <-again.C:
		case <-giveUp.C:
			fmt.Fprintln(os.Stderr, "host: the engine did not stop in", giveUpAfter)
			os.Exit(exitStuck)
		}
	}
}
