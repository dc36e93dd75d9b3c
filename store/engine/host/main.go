//go:build linux || darwin

package host

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Exit statuses of the host; see the package comment.
const (
	exitClean   = 0
	exitUnasked = 1
	exitUnable  = 2
	exitStuck   = 3
)

// errUnasked says that the engine returned although nobody had asked it to. The
// engine itself calls that a success, even when a statement failed.
var errUnasked = errors.New("the engine returned without a stop request")

// command is what the arguments of the sub-command ask for.
type command struct {
	library string   // the shared library to load, or
	server  string   // the server program to run
	store   string   // the engine's data directory; with library
	engine  []string // the engine's own arguments
}

// HostMain runs `courier engine-host`: args are the arguments after the
// sub-command's name, the result is the exit status. It blocks until the engine
// has ended. To confine itself it runs its own program once more in its place, with
// the same arguments and process ID.
func HostMain(args []string) int {
	c, err := parse(args, os.Stderr)
	if err != nil {
		return report(err)
	}
	life, err := newLifetime(os.NewFile(3, "lifetime"))
	if err != nil {
		return report(err)
	}
	if c.server != "" {
		return report(runServer(c, life))
	}
	return report(runLibrary(c, life))
}

// parse reads the arguments of the sub-command.
func parse(args []string, usage io.Writer) (command, error) {
	var c command
	f := flag.NewFlagSet("engine-host", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&c.library, "library", "", "the engine's shared library")
	f.StringVar(&c.server, "server", "", "a ClickHouse server program to run instead")
	f.StringVar(&c.store, "store", "", "the engine's data directory")
	if err := f.Parse(args); err != nil {
		return command{}, err
	}
	c.engine = f.Args()
	if (c.library == "") == (c.server == "") {
		return command{}, errors.New("engine-host needs either -library or -server")
	}
	if c.library != "" && c.store == "" {
		return command{}, errors.New("engine-host -library needs -store")
	}
	return c, nil
}

// report writes err as the last line of the host's log and turns it into the
// exit status.
func report(err error) int {
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(os.Stderr, "host:", err)
	if errors.Is(err, errUnasked) {
		return exitUnasked
	}
	return exitUnable
}
