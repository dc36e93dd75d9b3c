package advisor

import (
	"context"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	// retentionCheck is the interval of checks of the limits of JOB.
	retentionCheck = time.Minute

	// The stream must have room for retentionFactor times the events since the first event of the
	// oldest running job.
	retentionFactor = 2

	retentionStep = int64(1) << 30 // bytes; limits are multiples of it and change rarely
)

// keepLog regularly compares the limits of JOB with the needs of the running jobs. It reports the
// headroom, and widens the limits up to Options.MaxLogBytes.
func (a *Advisor) keepLog(ctx context.Context) error {
	warned := time.Time{}
	return every(ctx, retentionCheck, func() {
		if a.Ready() != nil || !a.bus.Connected() {
			return
		}
		err := a.checkLog(ctx)
		if err != nil && ctx.Err() == nil && time.Since(warned) > time.Hour {
			warned = time.Now()
			a.log.Warn("JOB stream may drop events of running jobs, widen it manually", "error", err)
		}
	})
}

// checkLog compares the limits once.
func (a *Advisor) checkLog(ctx context.Context) error {
	stream, err := a.logInfo(ctx)
	if err != nil {
		return err
	}
	n := a.logNeed(stream, a.now())
	if a.o.MaxLogBytes > 0 {
		n.bytes = min(n.bytes, max(a.o.MaxLogBytes, stream.MaxBytes))
	}
	isTooSmall := stream.MaxBytes > 0 && n.bytes > stream.MaxBytes
	isTooShort := stream.MaxAge > 0 && n.age > stream.MaxAge
	if (isTooSmall || isTooShort) && a.o.MaxLogBytes > 0 {
		wide, failure := a.bus.WidenStream(ctx, schemas.StreamJob, n.bytes, n.age)
		if failure == nil {
			a.log.Warn("JOB stream widened for the oldest running job", "job_id", n.job,
				"max_bytes", wide.MaxBytes, "max_age", wide.MaxAge)
			stream = wide
		}
		err = failure
	}
	a.metrics.headroom.Set(logHeadroom(stream, n))
	a.metrics.neededBytes.Set(float64(n.bytes))
	return err
}

// logNeed describes the events that JOB must keep for the oldest running job. It is zero if no job
// runs.
type logNeed struct {
	job   string
	first uint64        // sequence of its first event
	bytes int64         // required size, a multiple of retentionStep
	age   time.Duration // required age
	since time.Duration // time since its first event
}

// logNeed estimates the events that JOB must keep. It uses the sequences since the first event of
// the oldest running job, and the mean size of a message.
func (a *Advisor) logNeed(stream bus.StreamInfo, now time.Time) logNeed {
	a.mu.RLock()
	oldest := a.cluster.OldestRunning()
	var n logNeed
	if oldest != nil {
		n.job, n.first, n.since = oldest.ID, oldest.First, now.Sub(oldest.FirstEventAt())
	}
	a.mu.RUnlock()
	if oldest == nil || n.first == 0 || n.first > stream.Last {
		return logNeed{}
	}
	n.age = retentionFactor * n.since
	held := float64(stream.Last-n.first+1) * meanBytes(stream)
	n.bytes = (int64(retentionFactor*held)/retentionStep + 1) * retentionStep
	return n
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
	case n.job == "":
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
