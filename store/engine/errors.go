package engine

import "errors"

// Sentinels for errors.Is.
var (
	// ErrNotFound reports that no engine is installed. The error lists the searched paths and
	// the command that installs one.
	ErrNotFound = errors.New("no ClickHouse engine on this machine")

	// ErrUnsupported reports that this system or this build cannot run the engine.
	ErrUnsupported = errors.New("not supported here")

	// ErrNoNPM reports that Install does not find npm. The error names an alternative.
	ErrNoNPM = errors.New("npm is not installed")

	// ErrIntegrity reports a package with a checksum other than the pinned one.
	ErrIntegrity = errors.New("the engine package does not have the pinned checksum")

	// ErrInUse reports that another engine uses the data directory.
	ErrInUse = errors.New("the data directory is in use by another engine")

	// ErrPortTaken reports that another program listens on a requested port.
	ErrPortTaken = errors.New("the port is taken by another program")

	// ErrStopped reports that Run has ended with its context.
	ErrStopped = errors.New("the engine is stopped")
)

// errLocked reports that another process holds a lock.
var errLocked = errors.New("locked")
