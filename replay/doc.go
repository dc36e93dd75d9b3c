// Package replay repeats the decisions of a recorded log: the events of jobs, nodes and regressors,
// and the advice. Log.Verify makes every answer, prediction and warning of the log again and
// compares the numbers. Log.LateJobs counts the late jobs of the last month that would have been in
// time with the batch size that Courier promises.
//
// A log is read from a bus (ReadBus) or from JSON lines (Parse), and saved as JSON lines
// (Log.Write). The package changes nothing: it never publishes. The same log gives the same result.
// A Log must not be changed while it is replayed; apart from that its methods may be called
// concurrently.
package replay
