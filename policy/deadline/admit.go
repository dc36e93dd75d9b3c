package deadline

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
)

// tolerance is the rounding error of sums of missing ratios.
const tolerance = 1e-9

// request is a queued job with its cheapest option.
type request struct {
	task
	cost float64 // unit-seconds in an empty cluster
}

// admit decides about the queue, the cheapest job first: it leaves the most capacity to the others.
// Admitted jobs are added to the tasks.
func (s *plan) admit() {
	requests := s.requests()
	if len(requests) == 0 {
		return
	}
	units := float64(s.capacity) * (1 - s.o.headroomRatio(s.capacity))
	missing := s.fill(s.tasks, units, false).missing
	blocked := s.blockedSeconds()
	for i := range requests {
		t := &requests[i].task
		if t.work/t.curve.Fastest().Rate > t.due-blocked {
			s.move(policy.Refuse, t, 0, policy.ReasonNoCapacity)
			continue
		}

		at := s.insert(*t)
		f := s.fill(s.tasks, units, false)
		reason := policy.ReasonFits
		switch {
		case f.missing > missing+tolerance && !s.fitsSideBySide():
			reason = policy.ReasonNoCapacity
		case s.isCostly(&s.tasks[at]):
			reason = policy.ReasonTooCostly
		}
		if reason != policy.ReasonFits {
			s.tasks = slices.Delete(s.tasks, at, at+1)
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
	free := s.capacity
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.isIdle() || math.IsInf(t.due, 1) {
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
func (s *plan) requests() []request {
	var all []request
	for i := range s.view.Queue {
		job := &s.view.Queue[i]
		best := request{cost: math.Inf(1)}
		for k := range job.Options {
			t := s.newTask(job, &job.Options[k])
			t.option = k
			if cost := t.cost(t.due); cost < best.cost {
				best = request{t, cost}
			}
		}
		if best.job == nil {
			s.move(policy.Refuse, &task{job: job}, 0, policy.ReasonTooSlow)
			continue
		}
		all = append(all, best)
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.cost, b.cost) })
	return all
}

// cost returns the unit-seconds that complete a task within a time in an empty cluster; +Inf if none
// do.
func (t *task) cost(seconds float64) float64 {
	switch {
	case len(t.hull) == 0 || seconds <= 0:
		return math.Inf(1)
	case t.work <= 0:
		return 0
	case math.IsInf(seconds, 1):
		return t.work / t.hull[0].Rate * float64(t.hull[0].Units)
	case t.hull[len(t.hull)-1].Rate*seconds < t.work:
		return math.Inf(1)
	}
	return t.unitsFor(t.work/seconds) * seconds
}

// insert adds a task after those with the same due time, and returns its index.
func (s *plan) insert(t task) int {
	at, _ := slices.BinarySearchFunc(s.tasks, t, func(a, b task) int {
		if a.due <= b.due {
			return -1
		}
		return 1
	})
	s.tasks = slices.Insert(s.tasks, at, t)
	return at
}

// isCostly reports whether a placed task probably takes the place of several typical jobs. Future
// jobs are the more likely to need its units, the more of the capacity is used.
func (s *plan) isCostly(t *task) bool {
	if s.typical < 0 {
		s.typical = s.typicalCost()
	}
	if s.typical == 0 {
		return false
	}
	used := s.grid.utilization(t.due) * (1 - s.o.headroomRatio(s.capacity))
	return t.area/s.typical*used*used*used*used > costLimit
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
		cost := t.cost(job.Deadline.Sub(job.Submitted).Seconds())
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
