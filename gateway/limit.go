package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"courier/schemas"
)

// limiter is a token bucket for each client: so many requests a second, and
// twice as many at once after a rest.
type limiter struct {
	rate    float64 // a second; 0: no limit
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// mostBuckets bounds the memory of the limiter: beyond, full buckets are
// forgotten, and if none is full all are.
const mostBuckets = 20_000

func newLimiter(rate float64) *limiter {
	return &limiter{rate: rate, buckets: map[string]*bucket{}}
}

// allow takes one request of a client at an instant; if there is none left it
// says when there will be.
func (l *limiter) allow(client string, now time.Time) (wait time.Duration, ok bool) {
	if l.rate <= 0 {
		return 0, true
	}
	most := 2 * max(l.rate, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[client]
	if b == nil {
		if len(l.buckets) >= mostBuckets {
			l.forget(now, most)
		}
		b = &bucket{left: most, at: now}
		l.buckets[client] = b
	}
	b.left, b.at = min(most, b.left+l.rate*max(0, now.Sub(b.at).Seconds())), now
	if b.left < 1 {
		return time.Duration((1 - b.left) / l.rate * float64(time.Second)), false
	}
	b.left--
	return 0, true
}

// forget drops the buckets that are full again by now.
func (l *limiter) forget(now time.Time, most float64) {
	for client, b := range l.buckets {
		if b.left+l.rate*now.Sub(b.at).Seconds() >= most {
			delete(l.buckets, client)
		}
	}
	if len(l.buckets) >= mostBuckets {
		clear(l.buckets)
	}
}

// clientOf names who is counted: the user, or without one the address. Of IPv6
// addresses a network of 64 bits is one client: it has one owner.
func clientOf(r *http.Request, who asker) string {
	if who.user != "" {
		return "user " + who.user
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "address " + r.RemoteAddr
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return "address " + network.String()
		}
	}
	return "address " + address.String()
}

// slow refuses a client that asks too often.
func (g *Gateway) slow(w http.ResponseWriter, client string) error {
	wait, ok := g.limiter.allow(client, time.Now())
	if ok {
		return nil
	}
	w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
	return &statusError{http.StatusTooManyRequests, &schemas.Error{Code: schemas.CodeUnavailable, Message: fmt.Sprintf("%s asks more than %g times a second; try again in %.1f s", client, g.limiter.rate, wait.Seconds())}}
}
