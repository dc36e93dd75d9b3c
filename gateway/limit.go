package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// limiter is a token bucket per client with the given rate and a burst of two seconds' requests.
type limiter struct {
	rate    float64 // requests per second; 0: no limit
	mu      sync.Mutex
	buckets map[string]*tokenBucket
}

type tokenBucket struct {
	tokens    float64
	updatedAt time.Time
}

// maxBuckets bounds the memory of the limiter. When it is reached, full buckets are deleted; if
// none is full, all are.
const maxBuckets = 20_000

func newLimiter(rate float64) *limiter {
	return &limiter{rate: rate, buckets: map[string]*tokenBucket{}}
}

// allow reports whether a client may send a request now. If not, it returns how long the client
// must wait.
func (l *limiter) allow(client string, now time.Time) (wait time.Duration, ok bool) {
	if l.rate <= 0 {
		return 0, true
	}
	burst := 2 * max(l.rate, 1)
	l.mu.Lock()
	defer l.mu.Unlock()

	b := l.buckets[client]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.evict(now, burst)
		}
		b = &tokenBucket{tokens: burst, updatedAt: now}
		l.buckets[client] = b
	}
	elapsed := max(0, now.Sub(b.updatedAt).Seconds())
	b.tokens, b.updatedAt = min(burst, b.tokens+l.rate*elapsed), now
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) / l.rate * float64(time.Second)), false
	}
	b.tokens--
	return 0, true
}

// evict deletes the buckets that are full by now.
func (l *limiter) evict(now time.Time, burst float64) {
	for client, b := range l.buckets {
		if b.tokens+l.rate*now.Sub(b.updatedAt).Seconds() >= burst {
			delete(l.buckets, client)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}

// clientKey returns the key by which a client is limited: the user or, without tokens, the address.
// An IPv6 network of 64 bits is one client, because it usually has one owner.
func clientKey(r *http.Request, who identity) string {
	if who.user != "" {
		return "user " + who.user
	}
	source, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "address " + r.RemoteAddr
	}
	address := source.Addr().Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return "address " + network.String()
		}
	}
	return "address " + address.String()
}

// limit rejects a request that exceeds the client's rate.
func (g *Gateway) limit(w http.ResponseWriter, client string) error {
	wait, ok := g.limiter.allow(client, time.Now())
	if ok {
		return nil
	}
	w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
	err := unavailable(fmt.Sprintf("%s exceeds the limit of %g requests per second; retry in %.1f s",
		client, g.limiter.rate, wait.Seconds()))
	return &statusError{http.StatusTooManyRequests, err}
}
