// Package server runs a NATS server with JetStream inside this process.
//
// New checks and creates it, Run serves until its context ends, Ready tells the
// address. Everything it keeps lies in one directory; a second process on the
// same directory is refused by a lock. Only courier all and the tests use it: a
// cluster has servers of its own.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// Options says where the server listens and keeps its streams.
type Options struct {
	DataDir    string        // JetStream's files
	Host       string        // default 127.0.0.1
	Port       int           // 0: any free one; -1: none, connections come from this process only
	SyncAlways bool          // fsync each message: nothing acknowledged is lost by power loss, slowly
	Start      time.Duration // how long it may take to be ready; default 10 s
}

// Server is a NATS server.
type Server struct {
	ns  *nats.Server
	o   Options
	log *slog.Logger
}

// New returns a server that does not run yet. A port in use is found by Run.
func New(o Options, log *slog.Logger) (*Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Start == 0 {
		o.Start = 10 * time.Second
	}
	options := &nats.Options{ServerName: "courier", Host: o.Host, Port: o.Port, JetStream: true, StoreDir: o.DataDir, NoSigs: true, NoSystemAccount: false,
		DontListen: o.Port < 0, MaxPayload: 1 << 20, SyncAlways: o.SyncAlways, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 32 << 30}
	if o.Port == 0 {
		options.Port = nats.RANDOM_PORT
	}
	ns, err := nats.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("create nats server: %w", err)
	}
	ns.SetLoggerV2(&bridge{log: log}, false, false, false)
	return &Server{ns: ns, o: o, log: log}, nil
}

// Start begins to serve and returns when connections are accepted. The error
// names the port or the directory.
func (s *Server) Start(ctx context.Context) error {
	s.ns.Start()
	deadline := time.Now().Add(s.o.Start)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if !s.ns.ReadyForConnections(time.Until(deadline)) {
		s.ns.Shutdown()
		return fmt.Errorf("start nats server on %s:%d in %s: not ready after %s", s.o.Host, s.o.Port, s.o.DataDir, s.o.Start)
	}
	return nil
}

// URL returns the address for clients; empty if the server listens on no port.
func (s *Server) URL() string {
	if port := s.Port(); port >= 0 {
		return fmt.Sprintf("nats://%s:%d", s.o.Host, port)
	}
	return ""
}

// Port returns the port it listens on; -1 for none.
func (s *Server) Port() int {
	if a, ok := s.ns.Addr().(*net.TCPAddr); ok && s.o.Port >= 0 {
		return a.Port
	}
	return -1
}

// InProcessConn connects from inside this process, without the network.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

// Wait blocks until ctx ends or the server stops by itself, which is an error.
func (s *Server) Wait(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		s.ns.WaitForShutdown()
		close(stopped)
	}()
	select {
	case <-stopped:
		return errors.New("nats server stopped by itself; its log says why")
	case <-ctx.Done():
		s.Stop()
		<-stopped
		return nil
	}
}

// Stop closes all connections, writes everything out and returns when it is done.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// bridge hands the server's log to slog: what a server calls notice is debug here.
type bridge struct{ log *slog.Logger }

func (b *bridge) Noticef(f string, v ...any) { b.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Warnf(f string, v ...any)   { b.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Fatalf(f string, v ...any)  { b.log.Error("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Errorf(f string, v ...any)  { b.log.Error("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Debugf(f string, v ...any)  {}
func (b *bridge) Tracef(f string, v ...any)  {}
