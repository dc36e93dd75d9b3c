// Package server runs a NATS server with JetStream inside this process.
//
// New creates the server, Start starts it, URL returns its address, and Wait blocks until it
// stops. All data lies in one directory, which a lock protects against a second process. After
// a full disk the server restarts itself; a separate nats-server has to be restarted by its
// operator. Only courier all and tests use this package: a cluster runs nats-server.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// Options configures the address and the storage of the server.
type Options struct {
	DataDir string // files of JetStream
	Host    string // default 127.0.0.1
	Port    int    // 0: any free port; -1: none, only this process can connect

	// SyncAlways calls fsync for each message: slow, but a power cut loses no acknowledged
	// message.
	SyncAlways bool

	// Config is a configuration file of nats-server for users, accounts, TLS and limits.
	// Options take precedence over its other settings.
	Config string

	Start time.Duration // timeout of Start; default 10 s
}

// Server is a NATS server.
type Server struct {
	o           Options
	log         *slog.Logger
	writeFailed chan struct{} // of capacity 1; full when JetStream can no longer write

	mu sync.Mutex
	ns *nats.Server // replaced after a full disk
}

// New returns a server that is not running. Start reports a port in use.
func New(o Options, log *slog.Logger) (*Server, error) {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	o.Start = cmp.Or(o.Start, 10*time.Second)
	s := &Server{o: o, log: log, writeFailed: make(chan struct{}, 1)}
	return s, s.create()
}

func (s *Server) create() error {
	o := s.o
	options := &nats.Options{}
	if o.Config != "" {
		var err error
		if options, err = nats.ProcessConfigFile(o.Config); err != nil {
			return fmt.Errorf("read the configuration of nats: %w", err)
		}
	}
	options.ServerName = "courier"
	options.NoSigs = true
	options.Host = o.Host
	options.Port = o.Port
	options.DontListen = o.Port < 0
	options.MaxPayload = 1 << 20
	options.JetStream = true
	options.StoreDir = o.DataDir
	options.SyncAlways = o.SyncAlways
	options.JetStreamMaxMemory = 64 << 20
	options.JetStreamMaxStore = 32 << 30
	if o.Port == 0 {
		options.Port = nats.RANDOM_PORT
	}
	ns, err := nats.NewServer(options)
	if err != nil {
		return fmt.Errorf("create nats server: %w", err)
	}

	ns.SetLoggerV2(&logAdapter{log: s.log, writeFailed: s.writeFailed}, false, false, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ns = ns
	return nil
}

func (s *Server) current() *nats.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ns
}

// Start starts the server and returns when it accepts connections. The error names the port
// and the directory.
func (s *Server) Start(ctx context.Context) error {
	ns := s.current()
	ns.Start()
	deadline := time.Now().Add(s.o.Start)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if !ns.ReadyForConnections(time.Until(deadline)) {
		ns.Shutdown()
		return fmt.Errorf("start nats server on %s:%d in %s: not ready after %s",
			s.o.Host, s.o.Port, s.o.DataDir, s.o.Start)
	}
	s.o.Port = cmp.Or(s.o.Port, s.Port()) // clients reconnect to it after a restart
	return nil
}

// URL returns the address for clients, or "" if the server listens on no port.
func (s *Server) URL() string {
	if port := s.Port(); port >= 0 {
		return fmt.Sprintf("nats://%s:%d", s.o.Host, port)
	}
	return ""
}

// Port returns the port, or -1 for none.
func (s *Server) Port() int {
	if a, ok := s.current().Addr().(*net.TCPAddr); ok && s.o.Port >= 0 {
		return a.Port
	}
	return -1
}

// InProcessConn returns a connection that does not use the network.
func (s *Server) InProcessConn() (net.Conn, error) { return s.current().InProcessConn() }

// Wait blocks until ctx ends, or until the server stops by itself, which is an error. If
// JetStream can no longer write, Wait restarts the server as soon as the disk has space.
func (s *Server) Wait(ctx context.Context) error {
	for {
		stopped := make(chan struct{})
		ns := s.current()
		go func() {
			ns.WaitForShutdown()
			close(stopped)
		}()
		select {
		case <-stopped:
			return errors.New("nats server stopped by itself; see its log for the reason")
		case <-ctx.Done():
			s.Stop()
			<-stopped
			return nil
		case <-s.writeFailed:
		}
		s.log.Error("nats cannot write and accepts no events: free space on its disk", "data", s.o.DataDir)
		if !s.waitForSpace(ctx) {
			continue // ctx has ended
		}
		if err := s.restart(ctx); err != nil {
			return err
		}
	}
}

func (s *Server) waitForSpace(ctx context.Context) bool {
	const probeBytes = 1 << 20
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	probe := filepath.Join(s.o.DataDir, "room")
	for {
		err := os.WriteFile(probe, make([]byte, probeBytes), 0o600)
		if err = errors.Join(err, os.Remove(probe)); err == nil {
			return true
		}
		s.log.Debug("nats waits for disk space", "error", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// restart restarts the server with the same data. A stream that failed to write rejects every
// message until a restart (nats-server 2.15). Clients reconnect by themselves.
func (s *Server) restart(ctx context.Context) error {
	s.Stop()
	select {
	case <-s.writeFailed: // drain the stale signal of the previous server
	default:
	}
	if err := s.create(); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	s.log.Info("nats restarted after a full disk", "data", s.o.DataDir)
	return nil
}

// Stop closes all connections, flushes the data and waits until the server has stopped.
func (s *Server) Stop() {
	ns := s.current()
	ns.Shutdown()
	ns.WaitForShutdown()
}

// logAdapter passes the server's log to slog; notices become debug messages. It also detects
// that a stream, or all of JetStream, has stopped writing, which the server reports only in its
// log.
type logAdapter struct {
	log         *slog.Logger
	writeFailed chan<- struct{}
}

func (a *logAdapter) Noticef(f string, v ...any) { a.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (a *logAdapter) Warnf(f string, v ...any)   { a.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (a *logAdapter) Fatalf(f string, v ...any)  { a.log.Error("nats: " + fmt.Sprintf(f, v...)) }
func (a *logAdapter) Debugf(f string, v ...any)  {}
func (a *logAdapter) Tracef(f string, v ...any)  {}

func (a *logAdapter) Errorf(f string, v ...any) {
	text := fmt.Sprintf(f, v...)
	a.log.Error("nats: " + text)
	if strings.Contains(strings.ToLower(text), "critical write error") ||
		strings.Contains(text, "will be DISABLED") {
		select {
		case a.writeFailed <- struct{}{}:
		default: // already signalled
		}
	}
}
