// Package instrument measures Python trainings from inside their processes.
//
// # Use
//
// Write writes the Python package courier_instrument, which Environment adds to PYTHONPATH. Every Python
// process of the job then starts it. It attaches to the frameworks that the process imports, and sends
// messages, one JSON object a line, to the Unix socket that Variable names. Merge takes these lines and
// the epochs of the output, and returns one series of epochs.
//
// # Which source counts
//
// The epochs of the output count until a process reports that a training begins. From then on, the
// measured numbers and durations count. An epoch of the output that ends during a measured one adds what
// was not measured, usually the metric. Measured epochs wait for it while the output counts epochs.
//
// A process whose steps cannot be seen (JAX), or whose loop is one over steps, reports only when its loop
// began. The first epoch of the output then begins there, and the start-up ends.
//
// Epochs that are only inferred from passes over the data may be wrong, for example if the script makes
// several passes in each of its epochs. If the output counts fewer epochs, those of the output count.
//
// # Promises, test
//
// A Merge performs no I/O, holds at most maxHeld epochs of each source, and ignores messages that it
// does not know. The epochs of the first process that reports a training count; those of another
// process count after the first one has ended. The tests
// of the package are tables of messages and output; clients/python has those of the Python files.
package instrument
