package policy

import (
	"cmp"
	"math"
	"slices"
)

// Ordering is a policy without promises: it admits every job that has an option, and serves the jobs
// in an order at each call.
type Ordering struct {
	choose  func(job *Job, capacity int) int        // index of the option of a queued job
	compare func(a, b *contender, capacity int) int // equal jobs keep the order of admission
	point   func(c Curve, free int) CurvePoint      // that a job gets if this many units are free
}

// contender is an admitted or queued job with the option that it runs with.
type contender struct {
	job    *Job
	option *Option
}

// EDF returns a baseline without elasticity: earliest deadline first. Each job takes its largest number
// of units that is free. No job is refused, and a late job keeps its place. These are the rules of "EDF"
// in ElasticFlow (Gu et al., ASPLOS 2023).
func EDF() *Ordering {
	return &Ordering{
		choose:  func(*Job, int) int { return 0 },
		compare: byDeadline,
		point:   Curve.Within,
	}
}

// byDeadline orders jobs; those without a deadline are last.
func byDeadline(a, b *contender, _ int) int {
	x, y := a.job.Deadline, b.job.Deadline
	switch {
	case x.IsZero() && y.IsZero():
		return 0
	case x.IsZero():
		return 1
	case y.IsZero():
		return -1
	}
	return x.Compare(y)
}

// JCT returns the policy that keeps the mean completion time short: shortest predicted remaining time
// first, each job on its fastest free number of units. A queued job is admitted with the option that
// ends first. Deadlines are ignored, and a long job may wait forever.
//
// On one machine the rule is optimal for exact predictions (Schrage, Operations Research 16, 1968).
func JCT() *Ordering {
	return &Ordering{choose: soonest, compare: byRemaining, point: fastestWithin}
}

// soonest returns the index of the option of a job that ends first.
func soonest(job *Job, capacity int) int {
	best, seconds := 0, math.Inf(1)
	for i := range job.Options {
		if s := job.Options[i].remainingSeconds(capacity); s < seconds {
			best, seconds = i, s
		}
	}
	return best
}

func byRemaining(a, b *contender, capacity int) int {
	return cmp.Compare(a.option.remainingSeconds(capacity), b.option.remainingSeconds(capacity))
}

// remainingSeconds returns the time that an option needs at its fastest rate; +Inf if it has none.
// Work that is not a number counts as none.
func (o *Option) remainingSeconds(capacity int) float64 {
	rate := fastestWithin(o.Curve, capacity).Rate
	switch {
	case !(rate > 0):
		return math.Inf(1)
	case !(o.Work > 0):
		return 0
	}
	return o.Work / rate
}

// fastestWithin returns the fastest point with at most this many units, of equally fast ones that with
// the fewest.
func fastestWithin(c Curve, units int) (best CurvePoint) {
	for _, p := range c {
		if p.Units > 0 && p.Units <= units && p.Rate > best.Rate {
			best = p
		}
	}
	return best
}

// Plan implements Policy.
func (o *Ordering) Plan(v *View) (moves []Move) {
	var contenders []contender
	free := v.Units
	for i := range v.Jobs {
		job := &v.Jobs[i]
		free -= job.Floor
		contenders = append(contenders, contender{job, &job.Options[0]})
	}
	for i := range v.Queue {
		job := &v.Queue[i]
		if len(job.Options) == 0 {
			moves = append(moves, Move{Kind: Refuse, Job: job.ID, Reason: ReasonTooSlow})
			continue
		}
		option := o.choose(job, v.Units)
		moves = append(moves, Move{Kind: Admit, Job: job.ID, Option: option, Reason: ReasonUnlimited})
		contenders = append(contenders, contender{job, &job.Options[option]})
	}
	slices.SortStableFunc(contenders, func(a, b contender) int { return o.compare(&a, &b, v.Units) })
	if start := v.NextMoment(); start.After(v.Now) {
		var jobs []*Job
		for _, c := range contenders {
			jobs = append(jobs, c.job)
		}
		return append(append(moves, StopExcess(jobs, v.Units)...), Move{Kind: Review, At: start})
	}

	for _, c := range contenders {
		units := max(c.job.Floor, o.point(c.option.Curve, c.job.Floor+free).Units)
		free -= units - c.job.Floor
		reason := ReasonShare
		if units < c.job.Units {
			reason = ReasonYield
		}
		if units != c.job.Units {
			moves = append(moves, Move{Kind: Resize, Job: c.job.ID, Units: units, Reason: reason})
		}
	}
	return moves
}

// StopExcess stops the last jobs if the jobs hold more units than there are: nodes may leave the cluster
// at a time at which no moment may be.
func StopExcess(jobs []*Job, capacity int) (moves []Move) {
	held := 0
	for _, j := range jobs {
		held += j.Units
	}
	for _, j := range slices.Backward(jobs) {
		if held > capacity && j.Units > 0 {
			held -= j.Units
			moves = append(moves, Move{Kind: Resize, Job: j.ID, Reason: ReasonYield})
		}
	}
	return moves
}
