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
// Until a training begins inside, the epochs of the output pass. From then on, the inside has the
// numbers and durations. An epoch of the output that ends within the time of a measured one adds what
// the inside does not know, mostly the metric. Measured epochs wait for it while the output counts epochs.
// Epochs that were only inferred from passes over the data give way if the output counts fewer of them,
// such as rounds of several passes.
//
// # Promises, test
//
// A Merge performs no I/O, holds at most maxHeld epochs of each source, and ignores messages that it
// does not know. The first process with a training is the job's; others count after its end. The tests
// of the package are tables of messages and output; clients/python has those of the Python files.
package instrument
