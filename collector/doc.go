// Package collector observes: a node by its counters, and a training job by
// running its command and reading what it prints.
//
// # Use
//
// A Collector measures the speed of this node, now and then again, samples it at an
// interval and publishes node.<node>.sample; the counters come from node_exporter's
// collectors in this process, or from a node_exporter that runs there. RunJob is
// `courier run`: it submits a job, starts its command with the advised batch size,
// and publishes started, epoch, and finished, failed or cancelled. An Observer
// tells what the node did between two instants, without any bus. ReplaySpool
// publishes what earlier runs could not.
//
// # What a job must do
//
// Nothing, if it prints BigDL's log or a JSON line at the end of each epoch:
//
//	{"epoch":1,"seconds":2.5,"loss":0.31,"accuracy":0.97,"validation_samples":597}
//
// Else it is given a regular expression with named groups (PatternExample). A
// duration comes from a number that the job prints, else from the arrival of its
// line by the monotonic clock, and the event says which; the first epoch timed by
// arrival contains the start-up, because nothing tells where it began. Dates in
// logs are never computed with. A run without recognised epochs still ends with
// the duration of the whole.
//
// # What a job may do
//
// Take another batch size while it runs, where JobOptions.Adapt allows that. By
// control, it reads the file that COURIER_CONTROL names before each epoch, and
// says in its epoch's line what it trains with, by which the runner sees that it
// was understood:
//
//	{"batch_size":128,"from_epoch":5}
//
// By restart, it is asked to end (SIGTERM) when it has reported an epoch, and is
// started again with the new {batch} and with {epoch}, the epochs done: it must
// have written its checkpoint before it reported. The run stays one run: epochs
// go on counting. After three epochs the change is judged by what was predicted;
// if less than half of that came it is taken back. job.<id>.moved tells all this.
//
// # Order, concurrency, failure
//
// A running job never waits for NATS or the advisor: its events go through a
// bounded queue to one goroutine, and from there to the bus or to an append-only
// file, in order; the file is replayed when the bus is back, at the next run, or
// by a Collector. Events keep their identity and their own time, so a copy
// changes nothing. A node's samples have a phase of their own in the interval, by
// its name, so that nodes do not publish at once. Output passes unchanged, on a pseudo terminal
// or on two pipes; signals go to the job's whole process group. While the bus
// is away a Collector keeps samples on disk, or in memory where there is none for
// it, and publishes them in order with their own times, by whichever process comes
// next. Both are bounded: of samples the oldest give way, because advice needs the
// newest; a run's file refuses what is too much but the job's end. Intervals are
// of the monotonic clock: one that is set changes when a sample says it was taken.
//
// What was not measured is absent, never 0: figures of a process tree exist on
// Linux, samples need Linux (node_exporter's collectors, of which there is one
// set in a process), and a job that hands its work to a daemon (docker run) is
// seen by its client only. Memory counts pages that processes share in each.
// A node's CPU model is what /proc/cpuinfo names, if it does. Its speed is that of
// one processor in a fixed piece of arithmetic, by the CPU time of the thread, so
// that other work on the node hardly changes it. What does makes it slower: samples
// tell the best that was measured, before a restart, too, as far as the log tells.
//
// # What a job itself takes and waits for
//
// CPU time, memory and bytes come from the job's cgroup (v1 or v2) where it has
// one of its own, figure by figure, else from its process tree; the epoch names
// those of the cgroup. A cgroup is the job's own if nobody else is in it: a
// command that moves itself into one (systemd-run --scope) is found there. Where
// it is permitted, RunJob makes one below ours, in which nothing is shared out
// otherwise than in ours: with v1 for accounting of CPU time and of memory, with
// v2 where no controller for processors or disks is on. It is removed at the end,
// or, if something was left in it, by a later run. Pressure needs v2, beside v1
// or alone. IO-wait of threads needs delay accounting (sysctl
// kernel.task_delayacct=1), and is absent for an epoch in which a thread ended.
//
// # Look inside, test
//
// The metrics courier_collector_… count samples, what waits, and what sampling
// costs. A spool is JSON lines, one event each. Parsers, rates, and the folds
// over epochs and progress are pure functions with tables of tests; the rest is
// tested over a real server from bus/bustest with the test program itself as the
// training command.
package collector
