package simulate

import "courier/schemas"

// SimulationScore is the result of a rule.
type SimulationScore struct {
	Rule      string `json:"rule"`
	Submitted int    `json:"submitted"`
	Accepted  int    `json:"accepted"` // number of promises
	Refused   int    `json:"refused"`
	Explored  int    `json:"explored"` // number of jobs that ran without a promise

	Kept      int      `json:"kept"`       // number of kept promises
	KeptRatio *float64 `json:"kept_ratio"` // kept / accepted; null if nothing was accepted
	KeptLow   *float64 `json:"kept_low"`   // 95 % interval (Wilson 1927)
	KeptHigh  *float64 `json:"kept_high"`

	// Comparisons with the true outcomes of other candidates on the advised node, given all later
	// jobs.
	WrongRefusalRatio float64 `json:"wrong_refusal_ratio"` // refused jobs for which a candidate would have met the SLO / submitted
	// AccuracyRegret is the mean difference in true accuracy between the best such candidate and
	// the chosen one, over the accepted jobs with such a candidate. The difference is 0 if the
	// chosen one is more accurate, because it would not have met the SLO. Null without such jobs.
	AccuracyRegret *float64 `json:"accuracy_regret"`

	CPUSeconds float64 `json:"cpu_seconds"` // CPUs times seconds of all jobs that ran

	Watched
}

// ratioOf returns a ratio with its 95 % interval (Wilson 1927); nil without cases.
func ratioOf(n, of int) (ratio, low, high *float64) {
	if of == 0 {
		return nil, nil, nil
	}
	r := float64(n) / float64(of)
	l, h := schemas.Wilson(uint64(n), uint64(of))
	return &r, &l, &h
}

func (o *JobOutcome) promised() bool {
	return o.Decision != schemas.BestEffort && o.Decision != schemas.Exploring
}

// ScoreOf returns the score of a rule.
func ScoreOf(rule string, outcomes []JobOutcome) SimulationScore {
	s := SimulationScore{Rule: rule, Submitted: len(outcomes), Watched: watched(outcomes)}
	for i := range outcomes {
		o := &outcomes[i]
		s.CPUSeconds += float64(o.CPUs) * o.Seconds
		switch o.Decision {
		case schemas.BestEffort:
			s.Refused++
		case schemas.Exploring:
			s.Explored++
		default:
			s.Accepted++
			if o.MetSLO {
				s.Kept++
			}
		}
	}
	s.KeptRatio, s.KeptLow, s.KeptHigh = ratioOf(s.Kept, s.Accepted)
	s.WrongRefusalRatio, s.AccuracyRegret = compared(outcomes)
	return s
}

// compared compares decisions with the best candidates.
func compared(outcomes []JobOutcome) (wrong float64, regret *float64) {
	sum, accepted := 0.0, 0
	for i := range outcomes {
		o := &outcomes[i]
		best := o.InHindsight
		if !best.Feasible {
			continue
		}
		switch o.Decision {
		case schemas.BestEffort:
			wrong++
		case schemas.MeetsSLO:
			accepted++
			sum += max(0, best.Accuracy-o.Accuracy)
		}
	}
	if accepted > 0 {
		sum /= float64(accepted)
		regret = &sum
	}
	return wrong / float64(max(1, len(outcomes))), regret
}

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
	// FalseWarningRatio is the ratio of the promises that were kept although there was a warning.
	FalseWarningRatio *float64 `json:"false_warning_ratio"`
}

// ahead returns the ratio of the SLO that was left at the first warning; 0 without a warning before
// the deadline.
func (o *JobOutcome) ahead() float64 {
	if o.WarnedSeconds == nil {
		return 0
	}
	return max(0, (o.SLOSeconds-*o.WarnedSeconds)/o.SLOSeconds)
}

// watched returns the figures of the warnings of a rule.
func watched(outcomes []JobOutcome) (s Watched) {
	promises, misses, warned, needless := 0, 0, 0, 0
	for i := range outcomes {
		o := &outcomes[i]
		if !o.Watched || !o.promised() {
			continue
		}
		promises++
		switch ahead := o.ahead(); {
		case o.MetSLO && ahead > 0:
			needless++
		case !o.MetSLO:
			misses++
			if ahead >= aheadRatio {
				warned++
			}
		}
	}
	if promises == 0 {
		return s
	}
	s.Warned, s.FalseWarningRatio = &warned, new(float64(needless)/float64(promises))
	s.WarnedRatio, s.WarnedLow, s.WarnedHigh = ratioOf(warned, misses)
	return s
}
