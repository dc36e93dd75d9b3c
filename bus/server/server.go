// Package server runs a NATS server with JetStream inside this process.
//
// New checks and creates it, Run serves until its context ends, Ready tells the
// address. Everything it keeps lies in one directory; a second process on the
// same directory is refused by a lock. After a full disk it starts itself anew,
// which a nats-server of its own leaves to its operator. Only courier all and the
// tests use it: a cluster has servers of its own.
package server

import (
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

// Options says where the server listens and keeps its streams.
type Options struct {
	DataDir    string        // JetStream's files
	Host       string        // default 127.0.0.1
	Port       int           // 0: any free one; -1: none, connections come from this process only
	SyncAlways bool          // fsync each message: nothing acknowledged is lost by power loss, slowly
	Config     string        // file of nats-server's settings, of which users, accounts, TLS and limits count; "": none
	Start      time.Duration // how long it may take to be ready; default 10 s
}

// Server is a NATS server.
type Server struct {
	o      Options
	log    *slog.Logger
	broken chan struct{} // holds one when a stream can no longer be written

	mu sync.Mutex
	ns *nats.Server // another one after a full disk
}

// New returns a server that does not run yet. A port in use is found by Run.
func New(o Options, log *slog.Logger) (*Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Start == 0 {
		o.Start = 10 * time.Second
	}
	s := &Server{o: o, log: log, broken: make(chan struct{}, 1)}
	return s, s.create()
}

// create makes the server that Start starts.
func (s *Server) create() error {
	o := s.o
	options := &nats.Options{}
	if o.Config != "" {
		var err error
		if options, err = nats.ProcessConfigFile(o.Config); err != nil {
			return fmt.Errorf("read settings of nats: %w", err)
		}
	}
	options.ServerName, options.Host, options.Port, options.DontListen = "courier", o.Host, o.Port, o.Port < 0
	options.JetStream, options.StoreDir, options.SyncAlways = true, o.DataDir, o.SyncAlways
	options.NoSigs, options.MaxPayload, options.JetStreamMaxMemory, options.JetStreamMaxStore = true, 1<<20, 64<<20, 32<<30
	if o.Port == 0 {
		options.Port = nats.RANDOM_PORT
	}
	ns, err := nats.NewServer(options)
	if err != nil {
		return fmt.Errorf("create nats server: %w", err)
	}
	ns.SetLoggerV2(&bridge{log: s.log, broken: s.broken}, false, false, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ns = ns
	return nil
}

// now is the server that runs.
func (s *Server) now() *nats.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ns
}

// Start begins to serve and returns when connections are accepted. The error
// names the port or the directory.
func (s *Server) Start(ctx context.Context) error {
	ns := s.now()
	ns.Start()
	deadline := time.Now().Add(s.o.Start)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if !ns.ReadyForConnections(time.Until(deadline)) {
		ns.Shutdown()
		return fmt.Errorf("start nats server on %s:%d in %s: not ready after %s", s.o.Host, s.o.Port, s.o.DataDir, s.o.Start)
	}
	if s.o.Port == 0 {
		s.o.Port = s.Port() // clients find it there after a restart
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
	if a, ok := s.now().Addr().(*net.TCPAddr); ok && s.o.Port >= 0 {
		return a.Port
	}
	return -1
}

// InProcessConn connects from inside this process, without the network.
func (s *Server) InProcessConn() (net.Conn, error) { return s.now().InProcessConn() }

// Wait blocks until ctx ends or the server stops by itself, which is an error.
// Meanwhile it starts the server anew when a full disk is no longer full.
func (s *Server) Wait(ctx context.Context) error {
	for {
		stopped := make(chan struct{})
		ns := s.now()
		go func() {
			ns.WaitForShutdown()
			close(stopped)
		}()
		select {
		case <-stopped:
			return errors.New("nats server stopped by itself; its log says why")
		case <-ctx.Done():
			s.Stop()
			<-stopped
			return nil
		case <-s.broken:
		}
		s.log.Error("nats cannot write, and takes no events: make room on its disk", "data", s.o.DataDir)
		if !s.room(ctx) {
			continue // ctx has ended
		}
		if err := s.restart(ctx); err != nil {
			return err
		}
	}
}

// room waits until the disk takes something again; false if ctx ended before.
func (s *Server) room(ctx context.Context) bool {
	const least = 1 << 20
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	probe := filepath.Join(s.o.DataDir, "room")
	for {
		err := os.WriteFile(probe, make([]byte, least), 0o600)
		if err = errors.Join(err, os.Remove(probe)); err == nil {
			return true
		}
		s.log.Debug("nats waits for room", "error", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// restart starts the server again over the same data: a stream that once could
// not be written refuses everything until then (nats-server 2.15). Clients
// reconnect by themselves.
func (s *Server) restart(ctx context.Context) error {
	s.Stop()
	select {
	case <-s.broken: // what the old one said meanwhile
	default:
	}
	if err := s.create(); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	s.log.Info("nats has room again and was started anew", "data", s.o.DataDir)
	return nil
}

// Stop closes all connections, writes everything out and returns when it is done.
func (s *Server) Stop() {
	ns := s.now()
	ns.Shutdown()
	ns.WaitForShutdown()
}

// bridge hands the server's log to slog: what a server calls notice is debug here.
// It also hears what the server tells nowhere else: that a stream, or all of
// JetStream, has given up writing.
type bridge struct {
	log    *slog.Logger
	broken chan<- struct{}
}

func (b *bridge) Noticef(f string, v ...any) { b.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Warnf(f string, v ...any)   { b.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Fatalf(f string, v ...any)  { b.log.Error("nats: " + fmt.Sprintf(f, v...)) }
func (b *bridge) Debugf(f string, v ...any)  {}
func (b *bridge) Tracef(f string, v ...any)  {}

func (b *bridge) Errorf(f string, v ...any) {
	text := fmt.Sprintf(f, v...)
	b.log.Error("nats: " + text)
	if strings.Contains(strings.ToLower(text), "critical write error") || strings.Contains(text, "will be DISABLED") {
		select {
		case b.broken <- struct{}{}:
		default: // it is known
		}
	}
}
