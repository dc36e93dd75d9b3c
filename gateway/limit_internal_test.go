package gateway

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

func TestLimiter_FillsWithTime(t *testing.T) {
	l := newLimiter(10)
	now := time.Unix(1_790_000_000, 0)
	take := func(n int) (taken int) {
		for range n {
			if _, ok := l.allow("ada", now); ok {
				taken++
			}
		}
		return taken
	}
	if got := take(100); got != 20 {
		t.Errorf("burst of %d requests, want 20", got)
	}
	if wait, ok := l.allow("ada", now); ok || wait != 100*time.Millisecond {
		t.Errorf("next request allowed: %t, else after %s; want after 100ms", ok, wait)
	}
	now = now.Add(time.Second)
	if got := take(100); got != 10 {
		t.Errorf("after a second %d requests, want 10", got)
	}
	now = now.Add(time.Hour)
	if got := take(100); got != 20 {
		t.Errorf("after a pause %d requests, want 20", got)
	}
	now = now.Add(-time.Minute) // setting the clock back changes no bucket
	if got := take(1); got != 0 {
		t.Errorf("with the clock set back %d requests, want 0", got)
	}
}

func TestLimiter_IsBounded(t *testing.T) {
	l := newLimiter(1)
	now := time.Unix(1_790_000_000, 0)
	for i := range 3 * maxBuckets {
		if _, ok := l.allow(fmt.Sprint(i), now); !ok {
			t.Fatalf("the first request of client %d is rejected", i)
		}
	}
	if n := len(l.buckets); n > maxBuckets {
		t.Errorf("%d buckets, want at most %d", n, maxBuckets)
	}
}

func TestClientOf(t *testing.T) {
	for _, c := range []struct{ remote, user, want string }{
		{"192.0.2.7:1234", "", "address 192.0.2.7"},
		{"192.0.2.7:1234", "ada", "user ada"},
		{"[::ffff:192.0.2.7]:1", "", "address 192.0.2.7"},
		{"[2001:db8:1:2:3:4:5:6]:1", "", "address 2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1", "", "address fe80::/64"},
		{"@", "", "address @"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if got := clientKey(r, identity{user: c.user}); got != c.want {
			t.Errorf("clientKey(%s, %q) = %q, want %q", c.remote, c.user, got, c.want)
		}
	}
}
