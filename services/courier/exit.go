package main

import (
	"errors"
	"fmt"
	"io/fs"

	"courier/bus"
	"courier/schemas"
	"courier/services/local"
)

// Exit codes of all commands, apart from run, which has that of the training command; described in
// docs/reference/exit-codes.md.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnreachable = 4
	exitNotMet      = 5
)

// exitCode returns the exit code of a command by its error.
func exitCode(err error) int {
	var status exitStatus
	switch is := func(target error) bool { return errors.Is(err, target) }; {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, new(notMet)):
		return exitNotMet
	case errors.As(err, new(usageError)), is(schemas.ErrInvalid), is(bus.ErrIdentity):
		return exitUsage
	case is(schemas.ErrNotFound), is(fs.ErrNotExist), is(local.ErrNeverRan):
		return exitNotFound
	case is(schemas.ErrUnavailable):
		return exitUnreachable
	}
	return exitFailed
}

// exitStatus ends the program with a status and without a message, such as that of a job's command.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// notMet is the error of a command that has completed, and whose answer is no.
type notMet struct{ error }

// usageError is the error of a command line that cannot be run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, values ...any) error {
	return usageError{fmt.Errorf(format, values...)}
}
