package elasticflow

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/policy"
)

// Policy is the policy. It is safe for concurrent use.
type Policy struct {
	perArrival bool
}

// New returns the policy of the published code.
func New() *Policy {
	return &Policy{}
}

// NewPerArrival returns the variant that decides about each arrival separately.
func NewPerArrival() *Policy {
	return &Policy{perArrival: true}
}

// round is one decision.
type round struct {
	perArrival bool
	start      time.Time
	capacity   int
	shares     []minimumShare // admitted jobs in order of deadline
	steps      freeSteps
	d          policy.MoveDecision
}

// Plan implements policy.Policy.
func (p *Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	r := &round{perArrival: p.perArrival, start: view.NextMoment(now), capacity: view.Units()}
	for i := range view.Jobs {
		if job := &view.Jobs[i]; len(job.Options) > 0 {
			r.shares = append(r.shares, r.newShare(job))
		}
	}
	slices.SortStableFunc(r.shares, byWindow)
	if r.start.After(now) {
		r.stopExcess()
		r.d.ReviewAt = r.start
		return r.d
	}

	if p.perArrival {
		r.admitEach(view.Queue)
	} else {
		r.admitAll(view.Queue)
	}
	r.fill()
	free := r.capacity
	for i := range r.shares {
		free -= r.shares[i].units
	}
	planned := make([]int, len(r.shares))
	for i := range r.shares {
		planned[i] = r.shares[i].units
	}
	r.leftOver(free)
	r.resize(planned)
	r.review(now)
	return r.d
}

func (r *round) newShare(job *policy.ElasticJob) minimumShare {
	h := minimumShare{
		job:    job,
		curve:  job.Options[0].Curve.Rising(),
		work:   job.Options[0].Work,
		window: math.Inf(1),
	}
	if !(h.work > 0) || math.IsInf(h.work, 1) {
		h.work, h.curve = 0, nil
	}
	if !job.Deadline.IsZero() {
		h.window = job.Deadline.Sub(r.start).Seconds()
	}
	return h
}

func byWindow(a, b minimumShare) int {
	return cmp.Compare(a.window, b.window)
}

// fill plans all jobs against an empty cluster and returns the number of unsatisfied ones.
func (r *round) fill() int {
	r.steps = append(r.steps[:0], freeStep{0, r.capacity})
	unsatisfied := 0
	for i := range r.shares {
		r.steps.place(&r.shares[i])
		if !r.shares[i].isSatisfied {
			unsatisfied++
		}
	}
	return unsatisfied
}

// candidates returns the jobs of the queue that have a curve, and refuses the others.
func (r *round) candidates(queue []policy.ElasticJob) []minimumShare {
	var all []minimumShare
	for i := range queue {
		job := &queue[i]
		if len(job.Options) == 0 {
			r.settle(policy.Refuse, job, policy.ReasonTooSlow)
			continue
		}
		all = append(all, r.newShare(job))
	}
	return all
}

// admitAll admits all arrivals if every job can be satisfied, otherwise none.
func (r *round) admitAll(queue []policy.ElasticJob) {
	arrivals := r.candidates(queue)
	if len(arrivals) == 0 {
		return
	}
	before := slices.Clone(r.shares)
	r.shares = append(r.shares, arrivals...)
	slices.SortStableFunc(r.shares, byWindow)
	kind, reason := policy.Admit, policy.ReasonFits
	if r.fill() > 0 {
		kind, reason = policy.Refuse, policy.ReasonRound
		r.shares = before
	}
	for _, h := range arrivals {
		r.settle(kind, h.job, reason)
	}
}

// admitEach admits an arrival if no more jobs are unsatisfied with it than without it.
func (r *round) admitEach(queue []policy.ElasticJob) {
	arrivals := r.candidates(queue)
	if len(arrivals) == 0 {
		return
	}
	unsatisfied := r.fill()
	for _, h := range arrivals {
		before := r.shares
		r.shares = append(slices.Clone(before), h)
		slices.SortStableFunc(r.shares, byWindow)
		if r.fill() > unsatisfied {
			r.shares = before
			r.settle(policy.Refuse, h.job, policy.ReasonNoCapacity)
			continue
		}
		r.settle(policy.Admit, h.job, policy.ReasonFits)
	}
}

func (r *round) settle(kind policy.Kind, job *policy.ElasticJob, reason policy.Reason) {
	r.d.Moves = append(r.d.Moves, policy.Move{Kind: kind, Job: job.ID, Reason: reason})
}

// leftOver gives the free units to the jobs that value the next number of units most.
func (r *round) leftOver(free int) {
	for {
		best, value := -1, math.Inf(-1)
		for i := range r.shares {
			h := &r.shares[i]
			if next, ok := h.next(); ok && next.Units-h.units <= free {
				if v := r.value(h, next); v > value {
					best, value = i, v
				}
			}
		}
		if best < 0 {
			return
		}
		h := &r.shares[best]
		next, _ := h.next()
		free -= next.Units - h.units
		h.units = next.Units
	}
}

// next returns the next allowed point.
func (h *minimumShare) next() (policy.CurvePoint, bool) {
	for _, p := range h.curve {
		if p.Units > h.units {
			return p, true
		}
	}
	return policy.CurvePoint{}, false
}

// value orders the jobs for left-over units.
func (r *round) value(h *minimumShare, next policy.CurvePoint) float64 {
	now := h.at(h.units)
	if now.Units == 0 {
		return math.MaxFloat64
	}
	added := float64(next.Units - now.Units)
	perUnit := now.Rate / float64(now.Units)
	if r.perArrival {
		return (next.Rate - now.Rate) / added / perUnit
	}
	return h.work * (float64(next.Units)/next.Rate - 1/perUnit) / added
}

// resize returns the changes as moves. planned are the units without left-over ones.
func (r *round) resize(planned []int) {
	for i := range r.shares {
		h := &r.shares[i]
		reason := policy.ReasonShare
		switch {
		case h.units == h.job.Units:
			continue
		case h.units < h.job.Units:
			reason = policy.ReasonYield
		case h.units > planned[i]:
			reason = policy.ReasonLeftOver
		}
		r.d.Moves = append(r.d.Moves, policy.Move{
			Kind: policy.Resize, Job: h.job.ID, Units: h.units, Reason: reason,
		})
	}
}

// review makes the next round due where a plan first changes.
func (r *round) review(now time.Time) {
	until := math.Inf(1)
	for i := range r.shares {
		until = min(until, r.shares[i].until)
	}
	if until < maxReviewSeconds {
		r.d.ReviewAt = now.Add(max(time.Second, time.Duration(until*float64(time.Second))))
	}
}

// maxReviewSeconds bounds the time to a review, so that it is representable.
const maxReviewSeconds = 1e9

// stopExcess stops jobs if the jobs hold more units than there are, the latest deadline first.
func (r *round) stopExcess() {
	held := 0
	for i := range r.shares {
		held += max(0, r.shares[i].job.Units)
	}
	for i := len(r.shares) - 1; i >= 0 && held > r.capacity; i-- {
		if job := r.shares[i].job; job.Units > 0 {
			held -= job.Units
			r.d.Moves = append(r.d.Moves, policy.Move{
				Kind: policy.Resize, Job: job.ID, Reason: policy.ReasonYield,
			})
		}
	}
}
