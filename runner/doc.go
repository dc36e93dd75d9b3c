// Package runner runs a training job. It starts the command of the job with the advised batch
// size, reads its output, measures its processes, and publishes the events of the job.
//
// # Use
//
// Run is `courier run`. It submits the job, waits for its admission, starts the command, and
// publishes started, epoch, and one of finished, failed and cancelled. Package runner/output
// parses the output, and package runner/usage measures the processes.
//
// # Requirements of a job
//
// A job that prints BigDL's log or a JSON object per epoch needs no change. Otherwise it needs a
// regular expression with named groups (see package output). The duration of an epoch is the one
// that the job prints, or else the time between the arrivals of its lines, and the event contains
// which. The first epoch that is timed by arrival includes the start-up of the job. A run without
// recognized epochs still has the duration of the whole run.
//
// A job may report its epochs beside its output: COURIER_CHANNEL names a Unix stream socket that
// takes the same JSON objects, one a line. Once a client has connected, epochs in the output do not
// count. A client keeps one connection open.
//
// # Changing the batch size or the CPUs of a running job
//
// If Options.Adapt permits it, a running job changes to the batch size of new advice. With
// AdaptControl, the job reads the file named by COURIER_CONTROL before each epoch, and prints the
// batch size with each epoch, which confirms the change:
//
//	{"batch_size":128,"from_epoch":5}
//
// With ResizeControl, the file also has "cpus", the number of CPUs for an elastic job, and the job
// prints "cpus" with each epoch.
//
// With AdaptRestart, the command is stopped with SIGTERM after an epoch, and restarted with the new
// {batch} and with {epoch}, the number of completed epochs. It must write its checkpoint before
// it prints the epoch. The restart does not start a new run, and epochs continue to count. After
// three epochs, the measured gain is compared with the predicted one. If it is less than half, the
// change is undone. Each step is published as job.<id>.moved.
//
// # Order, concurrency, failure
//
// A running job never waits for NATS or the advisor. Its events pass through a spool.Outbox, which
// publishes them in order or keeps them on disk. If the advisor is unreachable, the command starts
// without advice. The output is copied unchanged, through a pseudo terminal or two pipes. Signals
// go to the process group of the job. Intervals are measured by the monotonic clock, so setting
// the wall clock changes only timestamps.
//
// # Observe, test
//
// Options.Stderr receives messages and a progress bar, the logger diagnostics. The states of epochs,
// adaptation and progress have no I/O and table-driven tests. Other tests run the test program as
// the training command, with the NATS server of package bus/bustest.
package runner
