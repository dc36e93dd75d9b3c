package store

import (
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// clockWindow is the minimum time for which the smallest delay of a node counts.
const clockWindow = 5 * time.Minute

// clockSkew compares the clocks of nodes with the log's. The delay between a sample's timestamp
// and its arrival in the log is the difference of the clocks plus the delivery, which takes long
// for samples from a spool. The smallest delay of a window is therefore close to the difference
// of the clocks. A negative delay shows a clock that is ahead.
//
// The zero value is ready to use. Its size grows with the number of nodes.
type clockSkew struct {
	mu                sync.Mutex
	since             time.Time                // start of the window
	current, previous map[string]time.Duration // smallest delay of the window, by node
}

// add adds the samples of a batch that was written at now.
func (c *clockSkew) add(records []bus.Record, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	for i := range records {
		s, ok := records[i].Event.(*schemas.Sample)
		if !ok {
			continue
		}
		delay := records[i].StoredAt.Sub(s.At)
		if smallest, ok := c.current[s.Node]; !ok || delay < smallest {
			c.current[s.Node] = delay
		}
	}
}

// advance starts a new window if the current one has ended.
func (c *clockSkew) advance(now time.Time) {
	age := now.Sub(c.since)
	if age < clockWindow {
		return
	}
	c.previous, c.current, c.since = c.current, make(map[string]time.Duration), now
	if age >= 2*clockWindow {
		c.previous = nil // older than the previous window
	}
}

// skew returns how far any node is ahead of the log's clock, and how far any node is behind it.
// Both are at least 0.
func (c *clockSkew) skew(now time.Time) (ahead, behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	for node, delay := range c.current {
		if previous, ok := c.previous[node]; ok {
			delay = min(delay, previous)
		}
		ahead, behind = max(ahead, -delay), max(behind, delay)
	}
	for node, delay := range c.previous {
		if _, ok := c.current[node]; !ok {
			ahead, behind = max(ahead, -delay), max(behind, delay)
		}
	}
	return ahead, behind
}
