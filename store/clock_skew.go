package store

import (
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// clockWindow is for how long, at least, a node's least delay counts.
const clockWindow = 5 * time.Minute

// clocks compares the nodes' clocks with the log's. A sample reaches the log after
// it was taken, by its delay or, from a spool, much later: so the least delay of a
// while is what the clocks differ by, and a little. One below 0 is a clock ahead.
// The zero value is ready. Its size is that of the cluster.
type clocks struct {
	mu          sync.Mutex
	since       time.Time                // when the window began
	now, before map[string]time.Duration // by node, least delay of this window and of the last
}

// note takes the samples of a batch, at an instant.
func (c *clocks) note(records []bus.Record, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(at)
	for i := range records {
		s, ok := records[i].Event.(*schemas.Sample)
		if !ok {
			continue
		}
		delay := records[i].StoredAt.Sub(s.At)
		if least, known := c.now[s.Node]; !known || delay < least {
			c.now[s.Node] = delay
		}
	}
}

// turn begins a new window where one has passed.
func (c *clocks) turn(at time.Time) {
	if passed := at.Sub(c.since); passed >= clockWindow {
		c.before, c.now, c.since = c.now, make(map[string]time.Duration), at
		if passed >= 2*clockWindow {
			c.before = nil // nothing came for so long
		}
	}
}

// skew returns how far the node that is furthest ahead of the log's clock is
// ahead, and how far the one furthest behind is behind; both at least 0.
func (c *clocks) skew(at time.Time) (ahead, behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(at)
	for node, least := range c.now {
		if last, known := c.before[node]; known {
			least = min(least, last)
		}
		ahead, behind = max(ahead, -least), max(behind, least)
	}
	for node, least := range c.before {
		if _, known := c.now[node]; !known {
			ahead, behind = max(ahead, -least), max(behind, least)
		}
	}
	return ahead, behind
}
