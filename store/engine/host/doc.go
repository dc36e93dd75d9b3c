// Package host implements the hidden sub-command `courier engine-host`, the child process that runs
// a ClickHouse engine. Package store/engine starts and supervises it.
//
//	engine-host -library /path/libchdb.so -store DIR -- ARGUMENTS
//
// It loads the library into this process and calls clickhouse-local with ARGUMENTS. It exists on
// linux/amd64 only. The build tag noengine excludes it, because a binary that imports purego needs
// the loader of glibc.
//
// The host ends when file descriptor 3 reaches end of file, so it outlives its supervisor only
// until the engine has stopped. Until then it holds descriptor 4, the lock of the data directory.
// It first confines itself by Landlock, if the kernel supports that: the engine
// can then read and write only its two directories, and open no connections.
//
// The working directory must be the engine's run directory, and the process must not have started
// anything else.
//
// The exit status is 0 after a requested stop, 1 if the engine returned without a request, 2 if it
// cannot run here (see the last line on standard error), and 3 if it did not stop in time.
//
// For tests, build a program whose main function calls HostMain. store/storetest turns any test
// binary into such a program.
package host
