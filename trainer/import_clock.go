package trainer

import (
	"sync"
	"time"

	"courier/bus"
)

// importAge is the age at which the log receives the event of an imported run. A runner that was
// disconnected for as long is no different.
const importAge = time.Hour

func isImported(r *bus.Record) bool {
	return r.StoredAt.Sub(r.Event.Stamped().At) > importAge
}

// maxImport bounds how long an import defers a fit.
const maxImport = 10 * time.Minute

// importClock reports whether runs are being imported. No fit begins during an import: otherwise a
// regressor would be promoted that has seen only the first runs.
type importClock struct {
	mu          sync.Mutex
	began, last time.Time
}

// add records an imported event.
func (c *importClock) add(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) > maxImport {
		c.began = now
	}
	c.last = now
}

// isRunning reports whether an event was imported within the last pause.
func (c *importClock) isRunning(now time.Time, pause time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.last) < pause && now.Sub(c.began) < maxImport
}
