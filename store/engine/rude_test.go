//go:build linux && amd64 && !noengine

package engine_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/store/engine"
)

// rudeClient is a connection that violates the protocol.
type rudeClient struct {
	t testing.TB
	*net.TCPConn
}

// dial connects to the HTTP or the native port.
func dial(t testing.TB, address string) rudeClient {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port(t, address))))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return rudeClient{t, conn.(*net.TCPConn)}
}

// send sends bytes. It ignores errors: the server may have closed the connection.
func (r rudeClient) send(text string) { _, _ = io.WriteString(r, text) }

// receive reads at most n bytes, or until the server closes the connection.
func (r rudeClient) receive(n int) { _, _ = io.CopyN(io.Discard, r, int64(n)) }

// reset closes the connection by RST.
func (r rudeClient) reset() {
	r.t.Helper()
	if err := r.SetLinger(0); err != nil {
		r.t.Error(err)
	}
	_ = r.Close() // the server may have closed it
}

// request returns a complete HTTP request of a user.
func request(p engine.Connection, query, more string) string {
	verb := "GET"
	if strings.Contains(more, "Content-Length") || strings.Contains(more, "chunked") {
		verb = "POST"
	}
	return fmt.Sprintf("%s /?query=%s HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n%s\r\n",
		verb, strings.ReplaceAll(query, " ", "+"), p.User, p.Password, more)
}

func TestEngine_SurvivesRudeClients(t *testing.T) {
	e := run(t, withEngine(t))
	p := e.ready()
	must(t, p, "CREATE TABLE sink (x Int64) ENGINE = MergeTree ORDER BY x")
	const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage after a TLS hello\r\n\r\n"
	quick, endless := request(p, "SELECT 1", ""), request(p, "SELECT number FROM numbers(1000000000)", "")
	insert := "INSERT INTO sink FORMAT CSV"
	for _, c := range []struct {
		name string
		does func(t *testing.T)
	}{
		{"TLS to the HTTP port", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send(hello)
			c.receive(1)
			c.reset()
		}},
		{
			"garbage to the HTTP port",
			func(t *testing.T) { c := dial(t, p.HTTPURL); c.send("\x00\xff\r\n\r\n\r\n"); c.reset() },
		},
		{"a header without end", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20))
			c.reset()
		}},
		{
			"reset before the answer",
			func(t *testing.T) { storm(t, p.HTTPURL, func(c rudeClient) { c.send(quick); c.reset() }) },
		},
		{
			"reset within the answer",
			func(t *testing.T) { storm(t, p.HTTPURL, func(c rudeClient) { c.send(quick); c.receive(1); c.reset() }) },
		},
		{
			"reset after the answer",
			func(t *testing.T) {
				storm(t, p.HTTPURL, func(c rudeClient) { c.send(quick); c.receive(20); c.reset() })
			},
		},
		{
			"reset with two requests under way",
			func(t *testing.T) {
				storm(t, p.HTTPURL, func(c rudeClient) { c.send(quick + quick); c.receive(1); c.reset() })
			},
		},
		{
			"reset within a long answer",
			func(t *testing.T) { c := dial(t, p.HTTPURL); c.send(endless); c.receive(100_000); c.reset() },
		},
		{"half-closed within a long answer", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send(endless)
			_ = c.CloseWrite() // the client continues to read
			c.receive(100_000)
			c.reset()
		}},
		{"reset within an insert", func(t *testing.T) {
			storm(t, p.HTTPURL,
				func(c rudeClient) { c.send(request(p, insert, "Content-Length: 100000\r\n") + "1\n2\n"); c.reset() })
		}},
		{"an incomplete insert", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send(request(p, insert, "Content-Length: 100000\r\n") + "1\n2\n")
			_ = c.CloseWrite() // the engine answers or closes the connection
			c.receive(1)
			c.reset()
		}},
		{"a bad chunk", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send(request(p, insert, "Transfer-Encoding: chunked\r\n") + "ZZZ\r\n")
			c.receive(1)
			c.reset()
		}},
		{"an incomplete chunk", func(t *testing.T) {
			c := dial(t, p.HTTPURL)
			c.send(request(p, insert, "Transfer-Encoding: chunked\r\n") + "FFFF\r\n1\n")
			c.reset()
		}},
		{
			"nothing to the native port",
			func(t *testing.T) { storm(t, p.NativeURL, func(c rudeClient) { c.reset() }) },
		},
		{
			"HTTP to the native port",
			func(t *testing.T) {
				c := dial(t, p.NativeURL)
				c.send("GET / HTTP/1.0\r\n\r\n")
				c.receive(1)
				c.reset()
			},
		},
		{
			"TLS to the native port",
			func(t *testing.T) { c := dial(t, p.NativeURL); c.send(hello); c.receive(1); c.reset() },
		},
		{"garbage to the native port", func(t *testing.T) {
			storm(t, p.NativeURL, func(c rudeClient) { c.send("\xff\xff\xff\xff\xff\xff\xff\x7fgarbage"); c.reset() })
		}},
		{
			"half a native hello",
			func(t *testing.T) { c := dial(t, p.NativeURL); c.send("\x00\x0aClickHouse"); c.reset() },
		},
		{
			"a native query before the hello",
			func(t *testing.T) { c := dial(t, p.NativeURL); c.send("\x01\x00\x00SELECT 1"); c.receive(1); c.reset() },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.does(t)
			if got := must(t, p, "SELECT 1"); got != "1" {
				t.Errorf("SELECT 1 = %q, want 1", got)
			}
			if again := e.ready(); again.PID != p.PID || !alive(p.PID) {
				t.Fatalf("the engine has restarted as process %d, want still %d", again.PID, p.PID)
			}
		})
	}
	if got := must(t, p, "SELECT count() FROM sink"); got != "0" {
		t.Errorf("incomplete inserts left %s rows, want none", got)
	}
}

// storm runs an attack on many connections, eight at a time.
func storm(t *testing.T, address string, does func(rudeClient)) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port(t, address))))
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // ignores errors: the test has a deadline
				does(rudeClient{t, conn.(*net.TCPConn)})
			}
		})
	}
	group.Wait()
}
