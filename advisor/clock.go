package advisor

import (
	"context"
	"time"

	"courier/bus"
	"courier/schemas"
)

// maxClockError is the difference between two clocks that does not matter.
const maxClockError = time.Second

// now returns the time by the clock of the NATS server, which is the same for all advisors and for the
// times of storage. An advisor whose own clock is an hour fast would declare each new job lost, and one
// whose clock is slow would admit jobs whose reservation seems to have ended.
func (a *Advisor) now() time.Time {
	return a.clock().Add(time.Duration(a.offset.Load())).UTC()
}

// clockCheck is the interval of comparisons with the server's clock.
const clockCheck = time.Minute

// keepClock corrects now regularly until ctx ends.
func (a *Advisor) keepClock(ctx context.Context) error {
	return every(ctx, clockCheck, func() {
		if !a.bus.Connected() {
			return
		}
		if _, err := a.logInfo(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("clock not compared with the server's", "error", err)
		}
	})
}

// logInfo describes the JOB stream. It corrects now if the clock of this machine differs from the server's
// by more than maxClockError and the uncertainty of the comparison, half the time of the request.
func (a *Advisor) logInfo(ctx context.Context) (bus.StreamInfo, error) {
	begin := a.clock()
	info, err := a.bus.StreamInfo(ctx, schemas.StreamJob)
	if err != nil || info.At.IsZero() {
		return info, err
	}
	uncertainty := a.clock().Sub(begin) / 2
	offset := info.At.Sub(begin.Add(uncertainty))
	if change := offset - time.Duration(a.offset.Load()); change.Abs() > maxClockError+uncertainty {
		a.offset.Store(int64(offset))
		a.log.Warn("the clock of this machine differs from that of the NATS server, which is used",
			"ahead_seconds", -offset.Seconds())
	}
	return info, nil
}
