// Package engine runs ClickHouse for `courier all` on a machine without docker and ClickHouse. The
// engine is the library libchdb in a child process. It has the real HTTP and native listeners on the
// loopback address, so clients see an ordinary server. If the user names a ClickHouse URL, this
// package is not used.
//
//	library, err := engine.FindLibrary(flag) // or engine.Install
//	e, err := engine.New(engine.Options{
//		DataDir:  dir,
//		HTTPPort: 8123,
//		TCPPort:  9000,
//	}, log, registry)
//	go e.Run(ctx)                 // supervises the engine until ctx ends
//	endpoint, err := e.Ready(ctx) // waits; call it again after a connection error
//
// # Processes
//
//	Engine.Run (supervisor)
//	  │ locks the data directory, writes the configuration, starts, watches, restarts, stops
//	  │ descriptor 3: a pipe; closing it requests the stop
//	  │ descriptor 4: the lock, held as long as the child lives
//	  ▼
//	courier engine-host (the same program; package host)
//	  │ libchdb in this process
//	  ▼
//	HTTP and native listeners on 127.0.0.1
//
// # Guarantees
//
// A data directory has one engine: a second one fails with ErrInUse and changes no file. When the
// child crashes, the supervisor restarts it after a growing delay, on the same ports. Connections
// are refused in the meantime. When the supervisor
// ends, even by SIGKILL, the child ends within seconds, and the next supervisor waits for that.
// Acknowledged inserts survive a kill of either process.
//
// # Requirements
//
// Stop the clients before the context of Run ends; otherwise a stop takes up to five seconds. The
// main function must pass the sub-command engine-host to host.HostMain. The data directory must
// be on a local disk.
//
// # Files
//
// In the data directory, store/ belongs to the engine, and credentials.json holds the passwords.
// run/ holds the generated configuration, ports.tsv, host.log (the output of the child) and
// engine.log. Connect with the printed address:
//
//	curl -u reader:PASSWORD 'http://127.0.0.1:8123/?query=SELECT+version()'
//
// store/storetest runs tests with a real engine.
package engine
