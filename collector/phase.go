package collector

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// phaseOf returns where in each interval a node takes its samples, so that a
// thousand nodes do not publish at once: it follows from the name alone, evenly.
func phaseOf(node string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(node))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(interval))
}

// awaitPhase waits for the next instant of the node's phase by the wall clock,
// and reports whether it came before the end of ctx.
func awaitPhase(ctx context.Context, node string, interval time.Duration) bool {
	now := time.Duration(time.Now().UnixNano())
	wait := phaseOf(node, interval) - now%interval
	if wait < 0 {
		wait += interval
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
