// Package cluster is the state of all jobs and nodes, as the event log describes it.
//
// # Use
//
// New returns the state before the first event. Apply changes it by an event, and returns the job that
// the event changed. The other methods read it: jobs, nodes, the queue, and what a new or running job
// meets. Freeze copies the state, Frozen.Encode writes the copy, and Decode reads it.
//
// # Order, concurrency, failure
//
// The state depends on the events and on the times at which the stream stored them, not on a clock.
// Duplicates and events of earlier runs change nothing. A snapshot and a replay of the later events
// give the same state as a replay of all events. Several goroutines may read the state at the same
// time, but none may read it during a change.
//
// Its size depends on what is alive: every list and map has a limit, and the entry that was used least
// recently, or the job that ended first, is dropped. Ended jobs lose their progress.
//
// # Files
//
//   - transition.go: the effect of every event; job_transition.go: its effect on the job
//   - retention.go: what is dropped after a transition
//   - observe.go: what samples and epochs show about nodes and jobs
//   - nodes.go, placement.go, queue.go: where jobs run, could run, or wait
//   - cluster.go: the state as a whole; snapshot.go: its encoding
//   - job.go: the state of one job; load.go, use.go, losses.go, bottleneck.go: of its epochs
//   - score.go: what the ends of jobs show about promises
//   - list.go: order
//
// The files of a line call only those of its own and of later lines.
//
// # Test
//
// Random histories with duplicates, cuts and restarts are compared with the same history without them.
package cluster
