// Package spool keeps events on disk while NATS is unreachable, and publishes them in order
// when it is reachable again.
//
// # Use
//
// An Outbox publishes the events of one run of a job. Events that cannot be published go to a
// file of the run, and are published from there later. Replay publishes the files that earlier
// runs left behind. A SampleQueue does the same for the samples of a node, in a directory of
// small files.
//
// # Order, concurrency, failure
//
// Each file holds one event per line as JSON, and events are published in the order in which
// they were added. An event keeps its identity and its timestamp, so NATS and every consumer
// drop duplicates. A line that was cut off by a crash is skipped and logged.
//
// Events belong to the cluster that their run reached first, or if it reached none, to the one at its
// address, and are published to no other one. They are removed after a month. The samples of one
// cluster are dropped when NATS is of a different one.
//
// A file is locked while its owner is alive, so that no other process publishes it. The lock
// ends with the process, even after a crash. Adding an event never waits for the network.
//
// Both stores are bounded. A full run file accepts only the end of the job; other events are
// counted as lost. A full SampleQueue drops the oldest samples, because advice needs the newest.
// Files are not synced to disk, so a power failure can lose the most recent events.
//
// # Observe, test
//
// Outbox.Lost and SampleQueue.Stats report what was lost and what waits. The tests use a real
// NATS server, file systems that are full or read-only, and a fuzz test for damaged files.
package spool
