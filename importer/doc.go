// Package past turns training runs that are over into jobs and their events, so
// that the regressors learn from them as from jobs that ran under Courier.
//
// # Use
//
// New takes Options; File and Directory read sources into it, in any number and
// mixture of formats (Formats); Finish returns the runs, oldest first, and what
// was refused. Events of a Run are those of the contract, with the times of the
// run. The package is pure but for the readers that it is given: it opens
// nothing, publishes nothing and looks at no clock.
//
// # Promises
//
// The same sources with the same options make the same jobs: a job's ID comes
// from the run's own ID and what it says, not from the time or place of reading.
// Nothing is guessed silently: what a source does not say comes from
// Options.Defaults, or the run is refused with file, line and field. A run of
// which only the whole time is known makes no epochs: it has a start and an end,
// and whoever learns divides its time by its epochs.
//
// Runs that lie are refused: fewer epochs than promised, the time of another run
// to the last digit, times that are not positive, an end before the start, and
// logs into which two jobs wrote.
//
// A Reader is for one goroutine. Foreign bytes are fuzzed (fuzz_test.go).
package importer
