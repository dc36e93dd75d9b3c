// Package spool keeps events on disk while NATS is unreachable, and publishes them in order
// when it is reachable again.
//
// # Use
//
// An Outbox publishes the events of one run of a job, or the samples of a node. Events that cannot be
// published go to a file, and are published from there later. Replay publishes the files that earlier
// processes left behind.
//
// # Order, concurrency, failure
//
// Each file holds one event per line as JSON, and events are published in the order in which
// they were added. An event keeps its identity and its timestamp, so NATS and every consumer
// drop duplicates. A line that was cut off by a crash is skipped and logged.
//
// Events belong to the cluster that their run reached first, or if it reached none, to the one at its
// address, and are published to no other one. They are removed after a month. An outbox of samples
// drops those that wait when NATS is of a different cluster.
//
// A file is locked while its owner is alive, so that no other process publishes it. The lock
// ends with the process, even after a crash. Adding an event never waits for the network.
//
// A file is bounded: a full one accepts only the end of the job; other events are counted as lost. It
// holds two days of samples. Files are not synced to disk, so a power failure can lose the most recent
// events.
//
// # Observe, test
//
// Outbox.Lost and Outbox.WaitingSince report what was lost and what waits. The tests use a real
// NATS server, file systems that are full, and a fuzz test for damaged files.
package spool
