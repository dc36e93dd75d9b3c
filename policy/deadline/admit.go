package deadline

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
)

// tolerance is the rounding error of sums of missing ratios.
const tolerance = 1e-9

// admit decides about the queue, the cheapest job first: it leaves the most capacity to the others.
// Admitted jobs are added to the tasks.
func (s *plan) admit() {
	requests := s.requests()
	if len(requests) == 0 {
		return
	}
	units := float64(s.view.Units) * (1 - s.o.headroomRatio(s.view.Units))
	typical := s.typicalCost()
	missing := s.fill(s.tasks, units, false).missing
	blocked := s.blockedSeconds()
	for _, t := range requests {
		if t.work/t.curve.Fastest().Rate > t.due-blocked {
			s.move(policy.Refuse, t, 0, policy.ReasonNoCapacity)
			continue
		}

		s.tasks = append(s.tasks, t)
		slices.SortStableFunc(s.tasks, byDue)
		f := s.fill(s.tasks, units, false)
		reason := policy.ReasonFits
		switch {
		case f.missing > missing+tolerance && !s.fitsSideBySide():
			reason = policy.ReasonNoCapacity
		case s.isCostly(t, typical):
			reason = policy.ReasonTooCostly
		}
		if reason != policy.ReasonFits {
			s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == t })
			s.move(policy.Refuse, t, 0, reason)
			continue
		}
		missing = f.missing
		s.move(policy.Admit, t, 0, reason)
	}
}

// fitsSideBySide reports whether each task meets its deadline with a constant whole number of units, for
// all of which the capacity suffices. It needs no headroom.
func (s *plan) fitsSideBySide() bool {
	free := s.view.Units
	for _, t := range s.tasks {
		if t.isIdle() || t.isTimeless() {
			continue
		}
		at := slices.IndexFunc(t.hull, func(p policy.CurvePoint) bool { return p.Rate*t.due >= t.work })
		if at < 0 || t.hull[at].Units > free {
			return false
		}
		free -= t.hull[at].Units
	}
	return true
}

// requests returns the queued jobs in order of cost. Jobs that are too slow for their deadline are
// refused.
func (s *plan) requests() (all []*task) {
	for i := range s.view.Queue {
		job := &s.view.Queue[i]
		best := &task{job: job, cost: math.Inf(1)}
		for k := range job.Options {
			t := s.newTask(job, &job.Options[k])
			t.option = k
			if t.cost = t.costWithin(t.due); t.cost < best.cost {
				best = t
			}
		}
		if math.IsInf(best.cost, 1) {
			s.move(policy.Refuse, best, 0, policy.ReasonTooSlow)
			continue
		}
		all = append(all, best)
	}
	slices.SortStableFunc(all, func(a, b *task) int { return cmp.Compare(a.cost, b.cost) })
	return all
}

// costWithin returns the unit-seconds that complete a task within a time in an empty cluster; +Inf if none
// do.
func (t *task) costWithin(seconds float64) float64 {
	switch {
	case len(t.hull) == 0 || seconds <= 0:
		return math.Inf(1)
	case t.work <= 0:
		return 0
	case math.IsInf(seconds, 1):
		return t.work / t.hull[0].Rate * float64(t.hull[0].Units)
	case t.fastest().Rate*seconds < t.work:
		return math.Inf(1)
	}
	return t.unitsFor(t.work/seconds) * seconds
}

// isCostly reports whether a placed task probably takes the place of several typical jobs. Future
// jobs are the more likely to need its units, the more of the capacity is used.
func (s *plan) isCostly(t *task, typical float64) bool {
	used := s.grid.utilization(t.due) * (1 - s.o.headroomRatio(s.view.Units))
	return typical > 0 && t.area/typical*used*used*used*used > costLimit
}

// typicalCost returns the median cost of the recently submitted jobs that are possible at all; 0 if
// there are none.
func (s *plan) typicalCost() float64 {
	var costs []float64
	for i := range s.view.Recent {
		job := &s.view.Recent[i]
		if len(job.Options) == 0 {
			continue
		}
		t := s.newTask(job, &job.Options[0])
		cost := t.costWithin(job.Deadline.Sub(job.Submitted).Seconds())
		if cost > 0 && !math.IsInf(cost, 1) {
			costs = append(costs, cost)
		}
	}
	if len(costs) == 0 {
		return 0
	}
	slices.Sort(costs)
	return costs[len(costs)/2]
}
