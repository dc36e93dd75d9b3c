// Package shares decides which CPUs running elastic jobs hold, and which jobs may start.
//
// # Use
//
// PoolOf returns the elastic jobs of a node and the CPUs that they share. Pool.Plan returns the changes
// of their CPUs for the objective of the cluster, and DecideMove the advice for each. Pool.Admit
// and Pool.MakeRoom return the advice of a new job if it may start on the node, possibly on CPUs that
// running jobs lend. SetVerdict applies an admission policy to an advice, and NextToStart
// orders the queue.
//
// # Promises
//
// All functions are pure: the state, the regressors and the time are arguments. No running job is
// stopped, and no job lends CPUs if it is then predicted to miss its SLO. PoolOf reads a cluster, so no
// event may change it meanwhile; a pool may be used afterwards.
//
// # Test
//
// Plans are compared with tables, and random pools with the rules that hold for each plan.
package shares
