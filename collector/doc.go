// Package collector samples a node: processors, memory, disks, network, pressure and speed.
//
// # Use
//
// A Collector is the service `courier collector`. It publishes node.<node>.sample at an interval,
// and publishes the events that runs on this node left in the spool. An Observer measures the load
// of the node for one job, and needs no service.
//
// # Sources
//
// The counters come from node_exporter's collectors in this process. The CPU model is the one in
// /proc/cpuinfo. The speed of the node is the speed of one processor in a fixed calculation. It is
// measured in CPU time of the thread, so other processes have little effect. As they can only make it
// slower, samples contain the best measured speed, including those in the log from before a restart.
//
// A figure that was not measured is nil, never 0. Samples require Linux. On other systems a
// Collector only publishes the events of runs.
//
// # Order, concurrency, failure
//
// Samples are numbered per boot and published in order, with their own timestamps. Nodes take their first
// sample at a random time, so that they do not all publish at the same time. While NATS is unreachable,
// samples wait in a spool.Outbox, and the next process publishes them after a crash. A collector
// refuses a node name that another machine uses. A process has one set of node_exporter's collectors,
// because that keeps its state in package variables.
//
// Intervals are measured by the monotonic clock, so setting the wall clock changes only timestamps.
//
// # Observe, test
//
// The metrics courier_collector_… count samples and failures, and describe the waiting samples and the
// cost of sampling. Parsers and rates are pure functions with tables of tests. Other tests use the
// NATS server of package bus/bustest.
package collector
