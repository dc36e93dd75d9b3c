//go:build linux

package main

import (
	"net"
	"sync"
	"testing"
)

// faultyProxy is a proxy of a server whose connections a test can cut or silence. A silent proxy
// transmits nothing until it is repaired, and neither side gets an error.
type faultyProxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	open   map[net.Conn]bool
	broken bool
	silent chan struct{} // closed at the end of the silence; nil: the proxy is not silent
	all    sync.WaitGroup
}

func newFaultyProxy(t *testing.T, target string) *faultyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &faultyProxy{listener: l, target: target, open: make(map[net.Conn]bool)}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.mend()
		w.all.Wait()
	})
	return w
}

func (w *faultyProxy) address() string { return w.listener.Addr().String() }

func (w *faultyProxy) url(scheme string) string { return scheme + "://" + w.address() }

func (w *faultyProxy) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil {
			reset(near)
			continue
		}
		w.mu.Lock()
		if w.broken {
			reset(near)
			reset(far)
		} else {
			w.open[near], w.open[far] = true, true
			w.all.Go(func() { w.forward(far, near) })
			w.all.Go(func() { w.forward(near, far) })
		}
		w.mu.Unlock()
	}
}

// forward copies bytes in one direction until one end closes.
func (w *faultyProxy) forward(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.awaitRepair()
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close() // one of them may be closed already
		delete(w.open, c)
	}
}

// awaitRepair waits until the proxy is not silent.
func (w *faultyProxy) awaitRepair() {
	w.mu.Lock()
	quiet := w.silent
	w.mu.Unlock()
	if quiet != nil {
		<-quiet
	}
}

// cut resets all connections and rejects new ones.
func (w *faultyProxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	for c := range w.open {
		reset(c)
	}
}

// stall stops forwarding without closing connections, until mend.
func (w *faultyProxy) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = make(chan struct{})
}

// mend forwards again and accepts new connections.
func (w *faultyProxy) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken = false; w.silent != nil {
		close(w.silent)
		w.silent = nil
	}
}

// reset closes a connection with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the connection may be closed already
	}
	_ = c.Close()
}
