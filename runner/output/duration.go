package output

import "math"

// Bounds of the ratio of a printed duration to the time between the arrivals of two ends. The lower
// bound leaves room for a validation that the printed time does not include.
const (
	leastRatio = 0.6
	mostRatio  = 1.05
	leastSince = 0.9  // of a time since the start, which leaves nothing out
	exactRatio = 0.01 // up to which a rounding does not matter
	slackTime  = 0.05 // seconds, for the delay of a pipe
	maxClocks  = 64
)

// clockState is what is known of a printed duration.
type clockState struct {
	last           float64
	agrees, denies int
}

// duration returns the seconds of an epoch. A printed duration counts only if it agrees with the
// time between arrivals, as it is or as the difference to the one before. This leaves out the times
// of batches, remaining times and times since the start, whatever they are called.
func (r *recogniser) duration(b *block, interval float64) (seconds float64, isReported bool) {
	for i := range b.readings {
		x := &b.readings[i]
		if x.name.kind != kindTime || x.level == ofBatch || x.name.flags&flagPart != 0 ||
			x.seen > 1 && r.lastNumber == 0 || b.isTimedApart && x.scope == scopeTrain {
			continue
		}
		key := x.name.hash*3 + uint64(x.scope)
		if r.clocks[key] == nil && len(r.clocks) >= maxClocks {
			continue
		}
		if r.clocks[key] == nil {
			r.clocks[key] = &clockState{}
		}
		c, v := r.clocks[key], x.value
		if agrees(v, interval) {
			c.agrees++
		} else if since := v - c.last; c.last > 0 && since > leastSince*interval && agrees(since, interval) {
			v = since
			c.agrees++
		} else if interval > 0 {
			c.denies++
		}
		c.last = x.value
		if c.agrees > c.denies && agrees(v, interval) && v > seconds {
			seconds, isReported = v, true
		}
	}
	// Where whole seconds are rounded, the time since the previous end is more exact.
	rounding := math.Abs(interval - seconds)
	isRounded := seconds == math.Trunc(seconds) && rounding < 1 && rounding > exactRatio*seconds
	if isReported && (!isRounded || r.lastNumber == 0) {
		return seconds, true
	}
	return interval, false
}

func agrees(v, interval float64) bool {
	return v > 0 && interval > 0 && v >= leastRatio*interval && v <= mostRatio*interval+slackTime
}
