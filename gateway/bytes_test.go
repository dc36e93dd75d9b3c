package gateway_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// countingListener counts the bytes that its connections write.
type countingListener struct {
	net.Listener
	written *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.written}, err
}

type countingConn struct {
	net.Conn
	written *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// An open page reads little while 119 jobs run and report 24 epochs a second for 20 s.
func TestBrowser_ReadsFewBytes(t *testing.T) {
	if os.Getenv("COURIER_PAGE_BYTES") == "" {
		t.Skip("takes 20 s a page; set COURIER_PAGE_BYTES")
	}
	const running, firstBytes, laterBytes = 119, 250_000, 300_000
	browser, b, h := openBrowser(t)
	for n := range running {
		runJob(t, b, fmt.Sprintf("job-%03d", n), time.Now().Add(-time.Minute), 1, "")
		runJob(t, b, fmt.Sprintf("ended-%03d", n), time.Now().Add(-time.Minute), 12, "finished")
	}
	target, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	var written atomic.Int64
	s := httptest.NewUnstartedServer(proxy)
	s.Listener = countingListener{s.Listener, &written}
	s.Start()
	t.Cleanup(s.Close)

	sent := 0
	tick := time.NewTicker(time.Second / 24)
	defer tick.Stop()
	for _, path := range []string{"/", "/jobs"} { // the others read less
		written.Store(0)
		p := browser.Page(t, s.URL+path, 1440, 900)
		p.WaitFor(`document.querySelector('#connection').dataset.state === 'live'`)
		first := written.Load()
		for range 480 {
			<-tick.C
			e := epoch(t, fmt.Sprintf("job-%03d", sent%running), uint32(2+sent/running))
			e.At, e.Model, e.BatchSize, e.CPUs, e.Epochs = time.Now(), "digits-mlp", 16, 2, 12
			e.Run, e.EventID = 1, fmt.Sprintf("%s/counted/%d", e.JobID, e.Epoch)
			h.publish(t, e)
			sent++
		}
		later := written.Load() - first
		t.Logf("%-14s %7d bytes, then %7d", path, first, later)
		if first > firstBytes || later > laterBytes {
			t.Errorf("%s reads %d bytes and then %d, want at most %d and %d", path, first, later,
				firstBytes, laterBytes)
		}
		p.Close()
	}
}
