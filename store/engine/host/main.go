//go:build linux && amd64 && !noengine

package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit statuses of the host; see the package comment.
const (
	exitClean      = 0
	exitUnexpected = 1
	exitUnable     = 2
	exitStuck      = 3
)

// errUnexpected reports that the engine returned without a stop request. The engine reports that as
// a success, even if a statement failed.
var errUnexpected = errors.New("the engine returned without a stop request")

type hostArguments struct {
	library string   // shared library to load
	store   string   // data directory of the engine
	engine  []string // arguments of the engine
	connect bool     // the engine may connect to other servers
}

// HostMain runs `courier engine-host` until the engine has ended. args are the arguments after the
// name of the sub-command. It returns the exit status. To confine itself, it executes its own
// program again, with the same arguments and process ID.
func HostMain(args []string) int {
	c, err := parse(args, os.Stderr)
	if err != nil {
		return report(err)
	}
	life, err := newLifetime(os.NewFile(3, "lifetime"))
	if err != nil {
		return report(err)
	}
	return report(runLibrary(c, life))
}

func parse(args []string, usage io.Writer) (hostArguments, error) {
	var c hostArguments
	f := flag.NewFlagSet("engine-host", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&c.library, "library", "", "shared library of the engine")
	f.StringVar(&c.store, "store", "", "data directory of the engine")
	f.BoolVar(&c.connect, "connect", false, "let the engine connect to other servers of a cluster")
	if err := f.Parse(args); err != nil {
		return hostArguments{}, err
	}
	c.engine = f.Args()
	if c.library == "" || c.store == "" {
		return hostArguments{}, errors.New("engine-host needs -library and -store")
	}
	return c, nil
}

func report(err error) int {
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(os.Stderr, "host:", err)
	if errors.Is(err, errUnexpected) {
		return exitUnexpected
	}
	return exitUnable
}

// stopTimeout is the time until the host exits anyway. A running supervisor kills it earlier.
const stopTimeout = 10 * time.Second

// newLifetime returns a context that ends when the supervisor closes its end of the pipe, dies, or sends
// SIGTERM.
func newLifetime(pipe *os.File) (context.Context, error) {
	info, err := pipe.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil, errors.New("descriptor 3 is not a pipe: " +
			"only `courier all` can start engine-host")
	}
	life, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, pipe) // any failure is the end, too
		end()
	}()
	life, _ = signal.NotifyContext(life, syscall.SIGTERM) // until the process ends
	return life, nil
}

// stopAfter requests the stop at an interval after the end of a lifetime, and exits after stopTimeout.
func stopAfter(life context.Context, interval time.Duration, requestStop func()) {
	<-life.Done()
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
