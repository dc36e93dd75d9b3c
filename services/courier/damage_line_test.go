//go:build linux

package main

import (
	"net"
	"sync"
	"testing"
)

// line is a connection to a server that a test can cut or silence. A silent line transmits nothing
// until it is repaired, and neither side gets an error.
type line struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	open   map[net.Conn]bool
	broken bool
	quiet  chan struct{} // closed when the line speaks again; nil: it does
	all    sync.WaitGroup
}

func newLine(t *testing.T, target string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &line{listener: l, target: target, open: make(map[net.Conn]bool)}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close() // nothing is kept
		w.cut()
		w.mend()
		w.all.Wait()
	})
	return w
}

func (w *line) address() string { return w.listener.Addr().String() }

func (w *line) url(scheme string) string { return scheme + "://" + w.address() }

func (w *line) accept() {
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
			w.all.Go(func() { w.carry(far, near) })
			w.all.Go(func() { w.carry(near, far) })
		}
		w.mu.Unlock()
	}
}

// carry copies bytes in one direction until one end closes.
func (w *line) carry(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.speak()
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
		_ = c.Close() // one of them is closed already
		delete(w.open, c)
	}
}

// speak waits until the line is not silent.
func (w *line) speak() {
	w.mu.Lock()
	quiet := w.quiet
	w.mu.Unlock()
	if quiet != nil {
		<-quiet
	}
}

// cut resets all connections and refuses new ones.
func (w *line) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	for c := range w.open {
		reset(c)
	}
}

func (w *line) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = make(chan struct{})
}

func (w *line) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken = false; w.quiet != nil {
		close(w.quiet)
		w.quiet = nil
	}
}

// reset closes a connection with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already, as below
	}
	_ = c.Close()
}
