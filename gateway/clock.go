package gateway

import "time"

const (
	clockPeriod = time.Minute // a lag is the smallest one of this period and of the one before
	clockRight  = time.Second // a clock is right if it differs by less
)

// clockLag estimates how far the clock of a node is behind that of NATS: by the smallest time between a
// sample and its storage. A delay makes single times longer, never shorter.
type clockLag struct {
	since            time.Time // start of the period
	smallest, before time.Duration
}

func (c *clockLag) add(lag time.Duration, storedAt time.Time) {
	switch age := storedAt.Sub(c.since); {
	case c.since.IsZero(), age > 2*clockPeriod:
		c.since, c.before, c.smallest = storedAt, lag, lag
	case age > clockPeriod:
		c.since, c.before, c.smallest = storedAt, c.smallest, lag
	default:
		c.smallest = min(c.smallest, lag)
	}
}

func (c *clockLag) lag() time.Duration { return min(c.smallest, c.before) }

// seconds returns the lag, or nil if the clock is right.
func (c *clockLag) seconds() *float64 {
	if c.lag().Abs() < clockRight {
		return nil
	}
	return new(c.lag().Round(100 * time.Millisecond).Seconds())
}
