package gateway

import (
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter has a token bucket per client with the given rate and a burst of two seconds' requests.
type limiter struct {
	rate    rate.Limit // requests per second; 0: no limit
	burst   int
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// maxBuckets bounds the memory of the limiter. When it is reached, full buckets are deleted; if
// none is full, all are.
const maxBuckets = 20_000

func newLimiter(perSecond float64) *limiter {
	return &limiter{
		rate:    rate.Limit(perSecond),
		burst:   int(math.Ceil(2 * max(perSecond, 1))),
		buckets: map[string]*rate.Limiter{},
	}
}

// allow reports whether a client may send a request now. If not, it returns how long the client
// must wait.
func (l *limiter) allow(client string, now time.Time) (wait time.Duration, ok bool) {
	if l.rate <= 0 {
		return 0, true
	}
	r := l.bucket(client, now).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait, wait == 0
}

// bucket returns the bucket of a client.
func (l *limiter) bucket(client string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[client]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.evict(now)
		}
		b = rate.NewLimiter(l.rate, l.burst)
		l.buckets[client] = b
	}
	return b
}

// evict deletes the buckets that are full by now.
func (l *limiter) evict(now time.Time) {
	for client, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
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
