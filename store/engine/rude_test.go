//go:build linux && amd64 && !noengine

package engine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/store/engine"
)

// rudeClient is a connection that violates the protocol.
type rudeClient struct{ *net.TCPConn }

// dial connects to the HTTP or the native port of an address.
func dial(address string) (rudeClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return rudeClient{}, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, patience)
	if err != nil {
		return rudeClient{}, err
	}
	return rudeClient{conn.(*net.TCPConn)}, conn.SetDeadline(time.Now().Add(10 * time.Second))
}

// send sends bytes. It ignores errors: the server may have closed the connection.
func (r rudeClient) send(text string) { _, _ = io.WriteString(r, text) }

// receive reads at most n bytes, or until the server closes the connection.
func (r rudeClient) receive(n int) { _, _ = io.CopyN(io.Discard, r, int64(n)) }

// reset closes the connection by RST, unless the server has closed it.
func (r rudeClient) reset() { _ = errors.Join(r.SetLinger(0), r.Close()) }

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
	query(t, p, "CREATE TABLE sink (x Int64) ENGINE = MergeTree ORDER BY x")
	const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage after a TLS hello\r\n\r\n"
	quick, endless := request(p, "SELECT 1", ""), request(p, "SELECT number FROM numbers(1000000000)", "")
	const insert = "INSERT INTO sink FORMAT CSV"
	cut := request(p, insert, "Content-Length: 100000\r\n") + "1\n2\n"
	chunked := request(p, insert, "Transfer-Encoding: chunked\r\n")
	const once, often = 1, 25
	for _, c := range []struct {
		name       string
		address    string
		times      int
		text       string
		closeWrite bool // after the text
		receive    int  // bytes before the reset
	}{
		{"TLS to the HTTP port", p.HTTPURL, once, hello, false, 1},
		{"garbage to the HTTP port", p.HTTPURL, once, "\x00\xff\r\n\r\n\r\n", false, 0},
		{"a header without end", p.HTTPURL, once, "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20), false, 0},
		{"reset before the answer", p.HTTPURL, often, quick, false, 0},
		{"reset within the answer", p.HTTPURL, often, quick, false, 1},
		{"reset after the answer", p.HTTPURL, often, quick, false, 20},
		{"reset with two requests under way", p.HTTPURL, often, quick + quick, false, 1},
		{"reset within a long answer", p.HTTPURL, once, endless, false, 100_000},
		{"half-closed within a long answer", p.HTTPURL, once, endless, true, 100_000},
		{"reset within an insert", p.HTTPURL, often, cut, false, 0},
		{"an incomplete insert", p.HTTPURL, once, cut, true, 1},
		{"a bad chunk", p.HTTPURL, once, chunked + "ZZZ\r\n", false, 1},
		{"an incomplete chunk", p.HTTPURL, once, chunked + "FFFF\r\n1\n", false, 0},
		{"nothing to the native port", p.NativeURL, often, "", false, 0},
		{"HTTP to the native port", p.NativeURL, once, "GET / HTTP/1.0\r\n\r\n", false, 1},
		{"TLS to the native port", p.NativeURL, once, hello, false, 1},
		{"garbage to the native port", p.NativeURL, often, "\xff\xff\xff\xff\xff\xff\xff\x7fgarbage", false, 0},
		{"half a native hello", p.NativeURL, once, "\x00\x0aClickHouse", false, 0},
		{"a native query before the hello", p.NativeURL, once, "\x01\x00\x00SELECT 1", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var group sync.WaitGroup
			for range min(8, c.times) {
				group.Go(func() {
					for range c.times {
						r, err := dial(c.address)
						if err != nil {
							t.Error(err)
							return
						}
						r.send(c.text)
						if c.closeWrite { // the engine answers or closes the connection
							_ = r.CloseWrite()
						}
						r.receive(c.receive)
						r.reset()
					}
				})
			}
			group.Wait()
			if got := query(t, p, "SELECT 1"); got != "1" {
				t.Errorf("SELECT 1 = %q, want 1", got)
			}
			if again := e.ready(); again.PID != p.PID || !alive(p.PID) {
				t.Fatalf("the engine has restarted as process %d, want still %d", again.PID, p.PID)
			}
		})
	}
	if got := query(t, p, "SELECT count() FROM sink"); got != "0" {
		t.Errorf("incomplete inserts left %s rows, want none", got)
	}
}
