package store_test

import (
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"

	"courier/schemas"
	"courier/store/storetest"
)

// relay forwards the connections of a listener to a server until the test ends.
type relay struct {
	net.Listener
	server string
	all    sync.WaitGroup

	// pass, if set, reports whether to forward a packet; otherwise the packet is lost.
	pass func(from net.Conn, packet []byte, toServer bool) bool

	mu   sync.Mutex
	open []net.Conn
}

func newRelay(
	t *testing.T, l net.Listener, server string, pass func(from net.Conn, packet []byte, toServer bool) bool,
) *relay {
	t.Helper()
	r := &relay{Listener: l, server: server, pass: pass}
	r.all.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.reset()
		r.all.Wait()
	})
	return r
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

func (r *relay) accept() {
	for {
		client, err := r.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.open = append(r.open, client, server)
		r.mu.Unlock()
		r.all.Go(func() { r.forward(server, client, true) })
		r.all.Go(func() { r.forward(client, server, false) })
	}
}

// forward copies data in one direction until one end closes.
func (r *relay) forward(to, from net.Conn, toServer bool) {
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && (r.pass == nil || r.pass(from, buffer[:n], toServer)) {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// reset resets all connections.
func (r *relay) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	r.open = nil
}

// cutter resets the connections of a relay after a number of packets.
type cutter struct {
	*relay
	counting sync.Mutex
	cuts     int
	packets  int // forwarded in both directions
	left     int // packets until a cut, which drops the last one; 0: no cut
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	c := &cutter{}
	c.relay = newRelay(t, listen(t), server, c.passes)
	return c
}

// passes counts a packet and reports whether to forward it.
func (c *cutter) passes(net.Conn, []byte, bool) bool {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.packets++
	if c.left == 0 {
		return true
	}
	if c.left--; c.left > 0 {
		return true
	}
	c.reset()
	c.cuts++
	return false
}

// cutAfter cuts the connections after this number of packets (0: never), and returns the number of packets
// and cuts so far.
func (c *cutter) cutAfter(left int) (packets, cuts int) {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.left = left
	return c.packets, c.cuts
}

// The test cuts the connection at random packets of an insert, so that an insert may succeed
// although its answer is lost.
func TestStore_LosesItsConnection(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.Address(t))
	must(t, err)
	direct := storetest.Open(t, u.String())
	must(t, direct.Migrate(t.Context()))
	w := newCutter(t, u.Host)
	u.Host = w.Addr().String()
	d := storetest.Open(t, u.String())
	writer := newStore(t, nil, d)
	var samples []schemas.Event
	failures, packets := 0, 20 // packets of a batch: each may be cut
	for n := range uint64(20) {
		s := newTestLog()
		for i := range uint64(50) {
			s.sample("node-a", 50*n+i)
		}
		b := batch(schemas.StreamNode, 50*n+1, s.events...)
		for attempt := 1; ; attempt++ {
			begin, _ := w.cutAfter(0)
			if attempt <= 6 {
				w.cutAfter(1 + rand.N(attempt*packets))
			}
			err = writer.Write(t.Context(), b)
			end, _ := w.cutAfter(0)
			if attempt == 20 {
				t.Fatalf("batch %d failed in 20 attempts, the last without a cut: %v", n, err)
			}
			if err == nil {
				packets = end - begin
				break
			}
			failures++
		}
		samples = append(samples, s.events...)
	}
	_, cuts := w.cutAfter(0)
	if failures == 0 {
		t.Errorf("none of %d cuts made a batch fail", cuts)
	}
	t.Logf("%d cuts, %d attempts failed", cuts, failures)
	wantNumber(t, direct, uint64(len(samples)), "SELECT count() AS n FROM node_sample")
	compareMinutes(t, direct, samples)
}
