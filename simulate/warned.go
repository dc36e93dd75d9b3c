package simulate

import (
	"slices"

	"courier/schemas"
)

// aheadRatio is how early a warning of a miss must come to be of use: with this
// share of the whole time still left.
const aheadRatio = 0.2

// Watched is how a rule that watches running jobs warned; all is null for one
// that does not. A miss is a promise that was broken. It was warned of if its
// first warning came while at least a fifth of the time between submission and
// deadline was left:
//
//	submitted ──────────── first warning ──────────── deadline
//	                              │◄──── at least 0.2 · SLO ────►│
type Watched struct {
	Warned      *int     `json:"warned"`       // misses that were warned of so early
	WarnedRatio *float64 `json:"warned_ratio"` // of all misses; null without any
	WarnedLow   *float64 `json:"warned_low"`   // its 95 % interval (Wilson 1927)
	WarnedHigh  *float64 `json:"warned_high"`
	// StandingWarnedRatio counts misses whose last warning, the one that no all-clear
	// took back, came so early.
	StandingWarnedRatio *float64 `json:"standing_warned_ratio"`
	// MedianAheadRatio is the share of the SLO that the first warning of a miss left,
	// the median; 0 for a miss without any before its deadline.
	MedianAheadRatio  *float64 `json:"median_ahead_ratio"`
	FalseWarningRatio *float64 `json:"false_warning_ratio"` // promises that were warned of and kept / promises
}

// ahead is the share of the SLO that the first warning left, 0 if there was none
// before the deadline.
func (o *Outcome) ahead() float64 {
	for _, w := range o.Warnings {
		if !w.Cleared {
			return max(0, (o.SLOSeconds-w.Seconds)/o.SLOSeconds)
		}
	}
	return 0
}

// standing is the share of the SLO that was left when the warning came which no
// all-clear took back, 0 if there was none before the deadline.
func (o *Outcome) standing() (share float64) {
	for _, w := range o.Warnings {
		share = 0
		if !w.Cleared {
			share = max(0, (o.SLOSeconds-w.Seconds)/o.SLOSeconds)
		}
	}
	return share
}

// watched sums up the warnings of a rule.
func watched(outcomes []Outcome) (s Watched) {
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
