// Package importer converts past training runs to jobs and their events, so that regressors learn
// from them as from jobs that ran under Courier.
//
// # Use
//
// New takes Options. Path and Sacct read any number of sources. Finish returns the runs, oldest first,
// and the rejected runs. PastRun.Events returns the events of a run at its original times. A Publisher
// publishes the events that the log does not have yet. Nothing else has side effects, and the package
// reads no clock.
//
// # Guarantees
//
// The same sources with the same options result in the same jobs: the job ID depends on the run's
// own ID and its content, not on the file name or the time of the import. The package does not
// guess: a missing value comes from Options.Defaults, or the run is rejected with file, line and
// field. Only a batch size may stay unknown. A run with only a total time has a start and an end but
// no epochs; the trainer divides its time by its number of epochs.
//
// Implausible runs are rejected: fewer epochs than configured, exactly the time of another run,
// times that are not positive, and an end before the start.
//
// A Reader must be used by one goroutine. Fuzz tests cover the parsers (fuzz_test.go).
package importer
