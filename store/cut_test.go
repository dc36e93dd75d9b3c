package store_test

import (
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"

	"courier/schemas"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// proxy is a proxy of a server whose connections a test can cut.
type proxy struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu      sync.Mutex
	open    []net.Conn
	cuts    int
	packets int // forwarded in both directions
	left    int // packets until a cut, which drops the last one; 0: no cut
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &proxy{listener: l, target: target}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.all.Wait()
	})
	return w
}

func (w *proxy) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.open = append(w.open, client, server)
		w.mu.Unlock()
		w.all.Go(func() { w.forward(server, client) })
		w.all.Go(func() { w.forward(client, server) })
	}
}

// forward copies data in one direction until one end closes.
func (w *proxy) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && w.passes() {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// passes counts a packet and reports whether to forward it.
func (w *proxy) passes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.packets++
	if w.left == 0 {
		return true
	}
	if w.left--; w.left > 0 {
		return true
	}
	w.cutLocked()
	return false
}

// cutAfter cuts the connections after this number of packets; 0: never.
func (w *proxy) cutAfter(pieces int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = pieces
}

func (w *proxy) forwarded() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.packets
}

// cut resets all connections.
func (w *proxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutLocked()
}

// cutLocked is cut for callers that hold the lock.
func (w *proxy) cutLocked() {
	for _, c := range w.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	w.open = nil
	w.cuts++
}

// The test cuts the connection at random packets of an insert, so that an insert may succeed
// although its answer is lost.
func TestStore_LosesItsConnection(t *testing.T) {
	t.Parallel()
	for _, protocol := range storetest.Protocols(t) {
		t.Run(protocol, func(t *testing.T) {
			u, err := url.Parse(storetest.Address(t, protocol))
			must(t, err)
			direct := storetest.Open(t, u.String())
			must(t, direct.Migrate(t.Context()))
			w := newProxy(t, u.Host)
			u.Host = w.listener.Addr().String()
			d := storetest.Open(t, u.String())
			writer := newStore(t, nil, d)
			var samples []*schemas.Sample
			failures, packets := 0, 20 // packets of a batch: each may be cut
			for n := range uint64(20) {
				s := newTestLog()
				for i := range uint64(50) {
					s.sample("node-a", 50*n+i)
				}
				b := batch(schemas.StreamNode, 50*n+1, s.events...)
				for attempt := 1; ; attempt++ {
					begin := w.forwarded()
					if attempt <= 6 {
						w.cutAfter(1 + rand.N(attempt*packets))
					}
					err = writer.Write(t.Context(), b)
					w.cutAfter(0)
					if attempt == 20 {
						t.Fatalf("batch %d failed in 20 attempts, the last without a cut: %v", n, err)
					}
					if err == nil {
						packets = w.forwarded() - begin
						break
					}
					failures++
				}
				for _, e := range s.events {
					samples = append(samples, e.(*schemas.Sample))
				}
			}
			w.mu.Lock()
			cuts := w.cuts
			w.mu.Unlock()
			if failures == 0 {
				t.Errorf("none of %d cuts made a batch fail", cuts)
			}
			t.Logf("%d cuts, %d attempts failed", cuts, failures)
			if got := selectNumber(t, direct, "SELECT count() AS n FROM node_sample"); got != uint64(len(samples)) {
				t.Errorf("node_sample has %d rows, want %d", got, len(samples))
			}
			var got []minute
			must(t, direct.Query(t.Context(), &got, minutesOf))
			if diff := cmp.Diff(rollUp(samples), got); diff != "" {
				t.Errorf("roll-up of the samples (-want +got):\n%s", diff)
			}
		})
	}
}
