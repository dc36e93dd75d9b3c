package simulate

import (
	"slices"

	"courier/schemas"
)

// aheadRatio is the smallest share of the SLO between a warning and the deadline. Later warnings do
// not count as timely.
const aheadRatio = 0.2

// Watched contains the figures on warnings of a Watcher. All are null for other rules. A miss is a
// job that was expected to meet its SLO, but did not. It counts as warned if at least a fifth of
// the time between submission and deadline was left at its first warning:
//
//	submitted ──────────── first warning ──────────── deadline
//	                              │◄──── at least 0.2 · SLO ────►│
type Watched struct {
	Warned      *int     `json:"warned"`       // misses with a timely warning
	WarnedRatio *float64 `json:"warned_ratio"` // ratio of all misses; null without misses
	WarnedLow   *float64 `json:"warned_low"`   // 95 % interval (Wilson 1927)
	WarnedHigh  *float64 `json:"warned_high"`
	// StandingWarnedRatio counts misses whose last warning was timely and not followed by an
	// all-clear.
	StandingWarnedRatio *float64 `json:"standing_warned_ratio"`
	// MedianAheadRatio is the median ratio of the SLO that was left at the first warning of a miss;
	// 0 for a miss without a warning before its deadline.
	MedianAheadRatio  *float64 `json:"median_ahead_ratio"`
	FalseWarningRatio *float64 `json:"false_warning_ratio"` // kept promises with a warning / promises
}

// ahead returns the ratio of the SLO that was left at the first warning; 0 without a warning before
// the deadline.
func (o *JobOutcome) ahead() float64 {
	for _, w := range o.Warnings {
		if !w.Cleared {
			return max(0, (o.SLOSeconds-w.Seconds)/o.SLOSeconds)
		}
	}
	return 0
}

// standing returns the ratio of the SLO that was left at the last warning without a later
// all-clear; 0 without such a warning before the deadline.
func (o *JobOutcome) standing() (share float64) {
	for _, w := range o.Warnings {
		share = 0
		if !w.Cleared {
			share = max(0, (o.SLOSeconds-w.Seconds)/o.SLOSeconds)
		}
	}
	return share
}

// watched returns the figures of the warnings of a rule.
func watched(outcomes []JobOutcome) (s Watched) {
	var aheads []float64
	promises, warned, stood, crying := 0, 0, 0, 0
	for i := range outcomes {
		o := &outcomes[i]
		if !o.Watched || !o.promised() {
			continue
		}
		promises++
		switch ahead := o.ahead(); {
		case o.MetSLO && ahead > 0:
			crying++
		case !o.MetSLO:
			aheads = append(aheads, ahead)
			if ahead >= aheadRatio {
				warned++
			}
			if o.standing() >= aheadRatio {
				stood++
			}
		}
	}
	if promises == 0 {
		return s
	}
	cried := float64(crying) / float64(promises)
	s.Warned, s.FalseWarningRatio = &warned, &cried
	if n := len(aheads); n > 0 {
		slices.Sort(aheads)
		ratio, standing := float64(warned)/float64(n), float64(stood)/float64(n)
		median := (aheads[(n-1)/2] + aheads[n/2]) / 2
		low, high := schemas.Wilson(uint64(warned), uint64(n))
		s.WarnedRatio, s.WarnedLow, s.WarnedHigh = &ratio, &low, &high
		s.StandingWarnedRatio, s.MedianAheadRatio = &standing, &median
	}
	return s
}
