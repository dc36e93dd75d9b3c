package collector

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// phaseOf returns the phase within each interval at which a node takes its samples. Phases are
// derived from the name and evenly distributed, so that a thousand nodes do not publish at once.
func phaseOf(node string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(node))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(interval))
}

// awaitPhase waits for the node's next phase by the wall clock. It returns false if ctx ends first.
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
