package deadline

import (
	"math"
	"slices"

	"courier/policy"
)

// task is a job in a plan. Seconds count from the start of the plan.
type task struct {
	job     *policy.Job
	current int // units that the job holds now

	// Of a queued job: its cheapest option, and the unit-seconds of that in an empty cluster.
	option int
	cost   float64

	curve policy.Curve
	hull  policy.Curve // rates lowered by expected pauses
	work  float64
	// window is the time to the deadline; due is the part of it in which the plan completes the
	// work. Both are +Inf without a deadline.
	window float64
	due    float64

	// Set by grid.place and fill.
	segment int     // the level is on the segment of the hull that ends at this point
	level   float64 // constant number of units that suffices
	share   float64 // units in the first step
	area    float64 // reserved unit-seconds
	missing float64 // work that cannot be done by the due time
	isLost  bool

	// Set by allocate.
	point int // of the hull; -1: the job holds nothing
	units int
}

// newTask returns a task that starts after the pause of a moment.
func (s *plan) newTask(job *policy.Job, o *policy.Option) *task {
	t := &task{job: job, curve: o.Curve}
	if o.Work > 0 {
		t.work = o.Work
	}
	lowered := slices.Clone(t.curve)
	for i, p := range t.curve {
		wait := s.view.Pause.Seconds(p.Units, false, false)
		lowered[i].Rate *= 1 - wait/(s.o.momentInterval.Seconds()+wait)
	}
	t.hull = lowered.Hull()

	t.window, t.due = math.Inf(1), math.Inf(1)
	if !job.Deadline.IsZero() && len(t.hull) > 0 {
		fastest := t.fastest()
		t.window = job.Deadline.Sub(s.start).Seconds()
		t.due = t.window - s.view.Pause.Seconds(fastest.Units, true, s.restarts)
		t.due -= min(s.o.margin.Seconds(), max(0, (t.due-t.work/fastest.Rate)/2))
	}
	return t
}

// isIdle reports whether a task cannot use any units.
func (t *task) isIdle() bool { return len(t.hull) == 0 || t.work <= 0 }

func (t *task) isTimeless() bool { return math.IsInf(t.due, 1) }

// fastest returns the largest useful point; the task must have one.
func (t *task) fastest() policy.CurvePoint { return t.hull[len(t.hull)-1] }

// progress returns the work that a job does from now on with its current units.
func (s *plan) progress(t *task, seconds float64) float64 {
	if t.current <= 0 {
		return 0
	}
	paused := max(0, t.job.PausedUntil.Sub(s.view.Now).Seconds())
	return t.curve.Rate(t.current) * max(0, seconds-paused)
}

// unitsFor returns the number of units that reaches a rate, at most the largest useful one.
func (t *task) unitsFor(rate float64) float64 {
	var last policy.CurvePoint
	for _, p := range t.hull {
		if rate <= p.Rate {
			ratio := (rate - last.Rate) / (p.Rate - last.Rate)
			return float64(last.Units) + ratio*float64(p.Units-last.Units)
		}
		last = p
	}
	return float64(last.Units)
}

// patience returns for how many seconds a job can hold these units and still meet its deadline with
// the largest useful number from then on.
func (t *task) patience(units int) float64 {
	rate, fastest := t.curve.Rate(units), t.fastest().Rate
	if rate >= fastest || t.isTimeless() {
		return math.Inf(1)
	}
	return (fastest*t.due - t.work) / (fastest - rate)
}
