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
	place, err := a.bus.StreamInfo(ctx, schemas.StreamJob)
	if err != nil {
		return err
	}
	n := a.logNeed(place, time.Now().UTC())
	if a.o.MaxLogBytes > 0 {
		n.bytes = min(n.bytes, max(a.o.MaxLogBytes, place.MaxBytes))
	}
	lacks := place.MaxBytes > 0 && n.bytes > place.MaxBytes || place.MaxAge > 0 && n.age > place.MaxAge
	if lacks && a.o.MaxLogBytes > 0 {
		wide, failure := a.bus.WidenStream(ctx, schemas.StreamJob, n.bytes, n.age)
		if failure == nil {
			a.log.Warn("JOB stream widened for the oldest running job", "job_id", n.job,
				"max_bytes", wide.MaxBytes, "max_age", wide.MaxAge)
			place = wide
		}
		err = failure
	}
	a.metrics.headroom.Set(headroom(place, n))
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
func (a *Advisor) logNeed(place bus.StreamInfo, now time.Time) logNeed {
	a.mu.RLock()
	oldest := a.cluster.oldestRunning()
	var n logNeed
	if oldest != nil {
		n.job, n.first, n.since = oldest.ID, oldest.first, now.Sub(oldest.known())
	}
	a.mu.RUnlock()
	if oldest == nil || n.first == 0 || n.first > place.Last {
		return logNeed{}
	}
	n.age = retentionFactor * n.since
	held := float64(place.Last-n.first+1) * meanBytes(place)
	n.bytes = (int64(retentionFactor*held)/retentionStep + 1) * retentionStep
	return n
}

// meanBytes is the mean size of a message of a stream.
func meanBytes(place bus.StreamInfo) float64 {
	if place.Messages == 0 {
		return 0
	}
	return float64(place.Bytes) / float64(place.Messages)
}

// headroom is the share of the limits of JOB that is left before the first event of the
// oldest running job is dropped.
func headroom(place bus.StreamInfo, n logNeed) float64 {
	switch {
	case n.job == "":
		return 1
	case n.first < place.First:
		return 0
	}
	left := 1.0
	if place.MaxBytes > 0 {
		left = 1 - float64(place.Last-n.first+1)*meanBytes(place)/float64(place.MaxBytes)
	}
	if place.MaxAge > 0 {
		left = min(left, 1-n.since.Seconds()/place.MaxAge.Seconds())
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
