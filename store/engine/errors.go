package engine

import "errors"

// What callers tell apart, with errors.Is.
var (
	// ErrNotFound: no engine is on this machine. The text lists where it was
	// looked for and the command that fixes it.
	ErrNotFound = errors.New("no ClickHouse engine on this machine")

	// ErrUnsupported: this system, or this build, cannot run what was asked.
	ErrUnsupported = errors.New("not supported here")

	// ErrNoNPM: Install needs npm and there is none; the text names the other way.
	ErrNoNPM = errors.New("npm is not installed")

	// ErrIntegrity: the bytes of a package are not those that are pinned.
	ErrIntegrity = errors.New("the engine package does not have the pinned checksum")

	// ErrInUse: another engine works in the same data directory.
	ErrInUse = errors.New("the data directory is in use by another engine")

	// ErrPortTaken: another program listens on a port that was asked for.
	ErrPortTaken = errors.New("the port is taken by another program")

	// ErrStopped: Run has ended, as its context asked.
	ErrStopped = errors.New("the engine is stopped")
)
