// Package services runs services as a process: signals, logging, ports, health, metrics, child
// processes, and parts that start in order and stop in reverse order.
//
// # Use
//
// A program gets a context from Signals and a logger from NewLogger, and passes groups of parts to
// Run. A part works until its context ends. Observe serves metrics and health over HTTP.
//
// # Order, failure
//
// All groups start at once. When the context ends or the first part returns, Run stops the last
// group and waits for it, then the group before it, and so on, so that a server outlives its
// clients. All groups together have Grace to stop; the error names the parts that did not.
package services
