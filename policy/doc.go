// Package policy contains what all scheduling policies share: the view of a cluster that a policy
// reads, the moves that it returns, and the rules that every decision must keep.
//
// A policy is a pure function: Plan(view, now) returns the moves for a state of the cluster. It has
// no clock, network or randomness of its own, so the same code can run in a simulator, over a
// replayed event log and in a service. The policies are sub-packages: deadline (the default), edf,
// elasticflow and jct. Others have views of their own: quality divides the CPU of a node by the fall
// of the loss, fit resizes jobs by their bottlenecks, and cost plans tunings and trainings.
//
// Capacity is counted in units: GPUs, CPUs or workers. A job holds one of the numbers of units on
// its curve, or none. A moment is a time at which the number of units of some job starts or changes;
// two moments are at least ClusterView.Slot apart, and running jobs pause at a moment (Pause). Refusing,
// admitting or stopping jobs is not a moment.
//
// A policy must not modify the view. It may be called concurrently. Check returns which rule a
// decision breaks; simulators call it after each decision, and fuzz tests of the policies rely on
// it.
package policy
