package advisor

import (
	"context"
	"time"

	"courier/bus"
)

const (
	// retentionCheck is the interval of checks of the limits of JOB.
	retentionCheck = time.Minute

	// retentionFactor times the events since the first event of the oldest running job should fit in JOB.
	retentionFactor = 2
)

// keepLog regularly compares the limits of JOB with the needs of the running jobs, and reports the
// headroom.
func (a *Advisor) keepLog(ctx context.Context) error {
	return every(ctx, retentionCheck, func() {
		if a.Ready() != nil || !a.bus.Connected() {
			return
		}
		stream, err := a.logInfo(ctx)
		if err != nil {
			if ctx.Err() == nil {
				a.log.Warn("limits of JOB not checked", "error", err)
			}
			return // the metrics keep their values
		}
		n := a.logNeed(stream, a.now())
		a.metrics.headroom.Set(logHeadroom(stream, n))
		a.metrics.neededBytes.Set(n.bytes)
	})
}

// logNeed describes the events that JOB must keep for the oldest running job. It is zero if no job
// runs.
type logNeed struct {
	first uint64        // sequence of its first event
	since time.Duration // time since its first event
	bytes float64       // required size
}

// logNeed estimates the events that JOB must keep. It uses the sequences since the first event of
// the oldest running job, and the mean size of a message.
func (a *Advisor) logNeed(stream bus.StreamInfo, now time.Time) logNeed {
	a.mu.RLock()
	defer a.mu.RUnlock()
	oldest := a.cluster.OldestRunning()
	if oldest == nil || oldest.First == 0 || oldest.First > stream.Last {
		return logNeed{}
	}
	held := float64(stream.Last-oldest.First+1) * meanBytes(stream)
	return logNeed{oldest.First, now.Sub(oldest.FirstEventAt()), retentionFactor * held}
}

// meanBytes returns the mean size of a message of a stream.
func meanBytes(stream bus.StreamInfo) float64 {
	if stream.Messages == 0 {
		return 0
	}
	return float64(stream.Bytes) / float64(stream.Messages)
}

// logHeadroom returns the share of the limits of JOB that is left before the stream drops the first
// event of the oldest running job.
func logHeadroom(stream bus.StreamInfo, n logNeed) float64 {
	switch {
	case n.first == 0:
		return 1
	case n.first < stream.First:
		return 0
	}
	left := 1.0
	if stream.MaxBytes > 0 {
		left = 1 - float64(stream.Last-n.first+1)*meanBytes(stream)/float64(stream.MaxBytes)
	}
	if stream.MaxAge > 0 {
		left = min(left, 1-n.since.Seconds()/stream.MaxAge.Seconds())
	}
	return max(0, left)
}
