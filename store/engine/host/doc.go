// Package host is the child's side of the ClickHouse engine: the hidden
// sub-command `courier engine-host`, which store/engine starts and watches.
//
// It runs one engine for one supervisor and has two forms:
//
//	engine-host -library /path/libchdb.so -store DIR -- ARGUMENTS
//	engine-host -server /path/clickhouse -- ARGUMENTS
//
// The first loads the library into this process and calls the whole of
// clickhouse-local with ARGUMENTS; it is built on linux/amd64 only, and left
// out by the build tag noengine, because importing purego makes a binary need
// the loader of glibc. The second runs a ClickHouse server program as a child
// of its own and is there on Linux and macOS.
//
// What it promises: it ends when file descriptor 3 reaches end of file, so it
// never outlives its supervisor for longer than the engine needs to stop, and
// it holds descriptor 4, the lock of the data directory, until then. With the
// library it confines itself first (Landlock, where the kernel has it): the
// engine can read and write its own two directories, and connect to nobody.
//
// What it asks of the caller: the working directory is the engine's run
// directory, and nothing else in the process has been started.
//
// The exit status is 0 after a stop that was asked for, 1 when the engine
// returned unasked, 2 when it cannot run here (the last line on standard error
// says why), 3 when it had to be given up.
//
// To test against it, build a program whose main hands its arguments to
// HostMain; store/storetest makes any test binary such a program.
package host
