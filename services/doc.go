// Package services turns rooms into a process: signals, logger, listeners,
// health, metrics, and parts that start in order and stop in the reverse order.
//
// # Use
//
// main gets a context from Signals, a Logger, an Observer with metrics and
// health, and hands groups of parts to Run. A part works until its context ends.
//
// # Order, failure
//
// Groups start one after the other. When the context ends, or the first part
// returns, the last group is stopped first and waited for, then the one before,
// so that a server outlives its clients. All together have Grace; what is not
// done by then is named in the error. Nothing of the house is imported here.
package services
