package advisor

import (
	"context"
	"time"

	"courier/schemas"
)

// readTimeout bounds how long a request waits until this advisor has applied recent events, or
// until the event log answers.
const readTimeout = 2 * time.Second

// every does something regularly until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do()
		}
	}
}

// waitFor waits until this advisor has applied JOB up to the sequence, or ctx ends.
func (a *Advisor) waitFor(ctx context.Context, sequence uint64) {
	for {
		a.mu.RLock()
		applied, moved := a.applied, a.advanced
		a.mu.RUnlock()
		if applied >= sequence {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// waitUntilKnown waits for an unknown job until this advisor has applied all events, because
// another advisor may have just recorded the job.
func (a *Advisor) waitUntilKnown(ctx context.Context, id string) {
	a.mu.RLock()
	known := a.cluster.Job(id) != nil
	a.mu.RUnlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if last, err := a.bus.LastSequence(ctx, schemas.StreamJob); err == nil {
		a.waitFor(ctx, last)
	}
}
