// Package doctor checks the connection to a cluster and its parts, as courier doctor.
//
// Examine queries the servers and the services, changes nothing, and returns a line for each check, with
// the action to take. An answer that the user may not read is a warning, not a failure. The functions
// that judge an answer are pure.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Result is the result of a check.
type Result string

// The results of a check.
const (
	OK   Result = "ok"
	Warn Result = "warn" // it works, and something should be done
	Fail Result = "fail" // it does not work
)

// Check is a line of the examination.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"` // what to do; empty if it is ok
}

// Examination is the result of Examine.
type Examination struct {
	Checks []Check `json:"checks"`
}

// Failed reports whether a check failed.
func (e *Examination) Failed() bool {
	return slices.ContainsFunc(e.Checks, func(c Check) bool { return c.Result == Fail })
}

// WriteText writes a line for each check.
func (e *Examination) WriteText(out io.Writer) {
	fmt.Fprintln(out, "check\tresult\tfound")
	for _, c := range e.Checks {
		text := c.Found
		if c.Do != "" {
			text += ": " + c.Do
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", c.Name, c.Result, text)
	}
}

// Options name the connection and the files that Examine checks.
type Options struct {
	Connect    func(context.Context) (*bus.Bus, error)
	Version    string                           // of this program
	SpoolDir   string                           // for events of jobs that could not be published
	FreeBytes  func(dir string) (uint64, error) // of the file system of a directory
	FindEngine func() (string, error)
}

// patience is how long a check waits for its answers.
const patience = 3 * time.Second

// Examine runs all checks. Without a connection it runs only the checks of this machine.
func Examine(ctx context.Context, o Options) *Examination {
	e := &Examination{}
	b, err := o.Connect(ctx)
	if err != nil {
		e.add(Check{"connection", Fail, schemas.Plain(err), ""})
	} else {
		e.add(Check{"connection", OK, b.Address(), ""})
		for _, examine := range []func(context.Context, *bus.Bus){
			e.streams,
			func(ctx context.Context, b *bus.Bus) { e.services(ctx, b, o.Version) },
			e.store, e.jobs, e.regressors, e.letters,
		} {
			one, cancel := context.WithTimeout(ctx, patience)
			examine(one, b)
			cancel()
		}
	}
	e.add(spoolCheck(o.SpoolDir, o.FreeBytes))
	library, err := o.FindEngine()
	e.add(engineCheck(library, err))
	return e
}

func (e *Examination) add(c Check) { e.Checks = append(e.Checks, c) }

// unread adds a check whose answer was not received.
func (e *Examination) unread(name string, err error) {
	c := Check{name, Fail, schemas.Plain(err), "see the log of the service or of the NATS server"}
	switch {
	case errors.Is(err, schemas.ErrForbidden):
		c.Result, c.Do = Warn, "ask as the operator"
	case errors.Is(err, schemas.ErrNotFound):
		c.Do = "start a service of Courier, which creates it"
	case errors.Is(err, schemas.ErrUnavailable):
		c.Do = "start the service, or check that JetStream has a leader"
	}
	e.add(c)
}
