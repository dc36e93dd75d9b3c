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
// recently, or the job that ended first, is dropped. Ended jobs are packed.
//
// # Files
//
//   - job.go: the state of one job; transition.go: all its transitions
//   - load.go, foreign.go, losses.go, bottleneck.go: what the epochs of a job show
//   - node.go, arrivals.go, placement.go, queue.go: jobs on nodes, and jobs that wait
//   - recalibration.go, score.go: what the ends of jobs show about promises
//   - list.go, packed.go, snapshot.go: order, memory, and the encoding
//
// # Test
//
// Random histories with duplicates, cuts and restarts are compared with the same history without them.
package cluster
