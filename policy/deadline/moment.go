package deadline

import (
	"math"
	"slices"

	"courier/policy"
)

// change carries out the allocation if a moment is worth it, or asks for a review.
func (s *plan) change() {
	excess := policy.StopExcess(s.jobs(), s.view.Units)
	switch {
	case !slices.ContainsFunc(s.tasks, func(t *task) bool { return t.units != t.current }):
	case s.lead > 0:
		s.moves = append(append(s.moves, excess...), policy.Move{Kind: policy.Review, At: s.start})
	case len(excess) > 0 || s.isMomentWorth():
		s.resize()
	default:
		review := s.view.Now.Add(s.o.reviewInterval)
		s.moves = append(s.moves, policy.Move{Kind: policy.Review, At: review})
	}
}

// isMomentWorth compares the promises that a moment now and waiting would lose. If neither loses
// more, the gain in speed must pay back the pauses.
func (s *plan) isMomentWorth() bool {
	broken := 0
	for _, t := range s.tasks {
		if _, ok := s.breaks(t); ok {
			broken++
		}
	}
	wait := max(s.o.reviewInterval.Seconds(), s.blockedSeconds())
	lost := max(s.impatient(), s.lostAfter(wait))
	return lost > broken || broken == 0 && s.paysBack()
}

// paysBack reports whether the allocation gains more than its pauses cost, in unit-seconds that are
// not needed later.
func (s *plan) paysBack() bool {
	gain, cost := 0.0, 0.0
	for _, t := range s.tasks {
		if t.isIdle() {
			continue
		}
		slope := t.hull.Slope(t.segment)
		rate := t.curve.Rate(t.units)
		gain += (rate - t.curve.Rate(t.current)) / slope
		cost += rate / slope * s.view.Pause.Seconds(t.units, t.units != t.current, s.restarts)
	}
	return gain*s.o.payBack.Seconds() > cost
}

// impatient counts the jobs that must get more units before the next review.
func (s *plan) impatient() int {
	n := 0
	for _, t := range s.tasks {
		waits := !t.isIdle() && t.units > t.current
		if waits && t.patience(t.current) < s.o.reviewInterval.Seconds() {
			n++
		}
	}
	return n
}

// lostAfter returns how many more jobs are lost if all jobs keep their units for a time.
func (s *plan) lostAfter(seconds float64) int {
	before := 0
	later := make([]*task, len(s.tasks))
	for i, t := range s.tasks {
		if t.missing > lostRatio*t.work {
			before++
		}
		l := *t
		l.work = max(0, t.work-s.progress(t, seconds))
		l.due -= seconds
		later[i] = &l
	}
	return s.fill(later, float64(s.view.Units), true).lost - before
}

// blockedSeconds returns how long after the start of the plan a moment would break a promise. Jobs
// that end later than options.urgent do not count: a single job must not block all others for long.
func (s *plan) blockedSeconds() float64 {
	until := 0.0
	for _, t := range s.tasks {
		end, ok := s.breaks(t)
		if ok && end < s.o.urgent.Seconds() {
			until = max(until, end)
		}
	}
	return until
}

// breaks reports whether a job ends in time with its current units, but not after the pause of a
// moment at the start of the plan. It returns the end of the job.
func (s *plan) breaks(t *task) (float64, bool) {
	rate := t.curve.Rate(t.current)
	if t.current == 0 || rate <= 0 {
		return 0, false
	}
	end := max(0, t.job.PausedUntil.Sub(s.start).Seconds()) + t.work/rate
	if end > t.window {
		return 0, false
	}
	earliest := math.Inf(1)
	for _, p := range t.curve {
		if p.Rate > 0 {
			wait := s.view.Pause.Seconds(p.Units, p.Units != t.current, s.restarts)
			earliest = min(earliest, wait+t.work/p.Rate)
		}
	}
	return end, earliest > t.window
}

// jobs returns the admitted jobs in order of due time.
func (s *plan) jobs() (jobs []*policy.Job) {
	for _, t := range s.tasks {
		if t.current > 0 {
			jobs = append(jobs, t.job)
		}
	}
	return jobs
}

// resize returns the allocation as moves.
func (s *plan) resize() {
	for _, t := range s.tasks {
		reason := policy.ReasonShare
		switch {
		case t.units == t.current:
			continue
		case t.units < t.current:
			reason = policy.ReasonYield
		case t.isLost || t.isTimeless() || t.point > t.segment:
			reason = policy.ReasonLeftOver
		}
		s.move(policy.Resize, t, t.units, reason)
	}
}
