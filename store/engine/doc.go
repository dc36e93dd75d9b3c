// Package engine runs a ClickHouse of its own for `courier all`, on a machine
// that has neither docker nor ClickHouse: the library libchdb in a child
// process, or a clickhouse program that is on the PATH, with the real HTTP and
// native listeners on the loopback address. Clients cannot tell it from a
// server. Who names a ClickHouse URL uses that, and nothing here runs.
//
//	library, err := engine.FindLibrary(flag, os.Getenv)     // or engine.Install
//	e, err := engine.New(engine.Options{DataDir: dir, HTTPPort: engine.DefaultHTTPPort, TCPPort: engine.DefaultTCPPort, PortsAreDefaults: true}, log, registry)
//	go e.Run(ctx)                                           // supervises until ctx ends
//	endpoint, err := e.Ready(ctx)                           // waits; ask again after a connection error
//
// Parts, and who holds what:
//
//	Engine.Run (supervisor)
//	  │ locks the data directory, writes the configuration, starts, watches, restarts, stops
//	  │ pipe on descriptor 3: closing it means "stop"     lock on descriptor 4: held as long as the child lives
//	  ▼
//	courier engine-host (the same program, run again; package host)
//	  │ libchdb in the process, or `clickhouse server` below it
//	  ▼
//	HTTP and native listeners on 127.0.0.1
//
// Promises. One engine per data directory: a second one is refused with
// ErrInUse and touches no file of the first. When the child dies it is started
// again after a growing pause, on the same ports unless somebody took them, and
// meanwhile connections are refused, as with any server. When the supervisor
// dies, even by SIGKILL, the child ends within seconds, and the next supervisor
// waits for that. What an insert has acknowledged survives a kill of either.
//
// Asked of the caller: end the clients before the context of Run, else stopping
// takes up to five seconds; dispatch the sub-command engine-host to
// host.HostMain in main; keep the data directory on a local disk.
//
// In the data directory: store/ is the engine's, credentials.json holds the
// passwords, run/ the generated configuration, ports.tsv, host.log (what the
// child printed) and engine.log. Connect with the printed address:
//
//	curl -u reader:PASSWORD 'http://127.0.0.1:8123/?query=SELECT+version()'
//
// To test against a real engine use store/storetest.
package engine
