package advisor

import (
	"context"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	// retentionCheck is how often the limits of JOB are compared with what is needed.
	retentionCheck = time.Minute

	// retentionFactor is how much more than the events since the first one of the oldest
	// running job the stream is to keep: as much again as the job has caused so far.
	retentionFactor = 2

	retentionStep = int64(1) << 30 // limits are multiples of it, so that they change rarely
)

// keepLog compares the limits of JOB with what the running jobs need, reports the
// headroom, and widens the limits while they are below the ceiling.
func (a *Advisor) keepLog(ctx context.Context) error {
	tick := time.NewTicker(retentionCheck)
	defer tick.Stop()
	warned := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if a.Ready() != nil || !a.bus.Connected() {
			continue
		}
		if err := a.checkLog(ctx); err != nil && ctx.Err() == nil && time.Since(warned) > time.Hour {
			warned = time.Now()
			a.log.Warn("the JOB stream may drop events of jobs that run; widen it by hand",
				"error", err)
		}
	}
}

// checkLog is one comparison.
func (a *Advisor) checkLog(ctx context.Context) error {
	stream, err := a.bus.StreamInfo(ctx, schemas.StreamJob)
	if err != nil {
		return err
	}
	n := a.logNeed(stream, time.Now().UTC())
	if a.o.MaxLogBytes > 0 {
		n.bytes = min(n.bytes, max(a.o.MaxLogBytes, stream.MaxBytes))
	}
	lacks := stream.MaxBytes > 0 && n.bytes > stream.MaxBytes || stream.MaxAge > 0 && n.age > stream.MaxAge
	if lacks && a.o.MaxLogBytes > 0 {
		wide, failure := a.bus.WidenStream(ctx, schemas.StreamJob, n.bytes, n.age)
		if failure == nil {
			a.log.Warn("JOB stream widened for the oldest running job", "job_id", n.job,
				"max_bytes", wide.MaxBytes, "max_age", wide.MaxAge)
			stream = wide
		}
		err = failure
	}
	a.metrics.headroom.Set(headroom(stream, n))
	a.metrics.neededBytes.Set(float64(n.bytes))
	return err
}

// logNeed is what JOB is to keep for the oldest running job; zero if none runs.
type logNeed struct {
	job   string
	first uint64        // sequence of its first event
	bytes int64         // with retentionFactor, in whole steps
	age   time.Duration // the same
	since time.Duration // since its first event
}

// logNeed computes what JOB is to keep, from the sequences since the first event of the
// oldest running job, and from the mean size of the events that the stream has.
func (a *Advisor) logNeed(stream bus.StreamInfo, now time.Time) logNeed {
	a.mu.RLock()
	oldest := a.cluster.oldestRunning()
	var n logNeed
	if oldest != nil {
		n.job, n.first, n.since = oldest.ID, oldest.first, now.Sub(oldest.firstEventAt())
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

// meanBytes is the mean size of a message of a stream.
func meanBytes(stream bus.StreamInfo) float64 {
	if stream.Messages == 0 {
		return 0
	}
	return float64(stream.Bytes) / float64(stream.Messages)
}

// headroom is the share of the limits of JOB that is left before the first event of the
// oldest running job is dropped.
func headroom(stream bus.StreamInfo, n logNeed) float64 {
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

// oldestRunning returns the running job whose first event is the oldest; nil: none runs.
func (c *Cluster) oldestRunning() *Job {
	var oldest *Job
	for _, j := range c.running {
		if oldest == nil || j.first < oldest.first {
			oldest = j
		}
	}
	return oldest
}
