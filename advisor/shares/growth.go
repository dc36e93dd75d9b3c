package shares

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
	"courier/policy/fit"
)

// shapeOf returns a job on one node as a shape of policy/fit.
func shapeOf(cpus int) fit.Shape { return fit.Shape{Workers: 1, WorkerCores: cpus} }

// ownFacts are those of a job on one node, whose processes exchange nothing over a network. An epoch
// counts as a step with one sample.
var ownFacts = fit.Facts{Architecture: fit.AllReduce, SamplesPerWorker: 1, BytesPerSecond: 1}

// keepGrown leaves jobs the CPUs by which they have grown, as long as no other job gets them.
func (s *Pool) keepGrown(jobs []forecast, granted int) {
	left := s.left(jobs) - granted
	for i := range jobs {
		f := &jobs[i]
		if more := f.actual - f.cpus; more > 0 && f.target == f.cpus && more <= left {
			f.target = f.actual
			left -= more
		}
	}
}

// left returns the CPUs that no job has by its target.
func (s *Pool) left(jobs []forecast) int {
	left := s.Capacity
	for i := range jobs {
		left -= jobs[i].target
	}
	return left
}

// grow gives free CPUs to jobs that have never been measured with so many, if their own epochs show
// that they would be faster (policy/fit): first where a CPU gains most. The runner undoes a move that
// does not bring half of its gain. Nothing is promised from it, so a job that is likely to meet its
// SLO does not grow.
func (s *Pool) grow(jobs []forecast) {
	if s.IsFixed || s.Objective == ObjectiveCost {
		return
	}
	var found []ownGrowth
	for i := range jobs {
		if g := jobs[i].ownGrowth(); g != nil {
			found = append(found, *g)
		}
	}
	slices.SortStableFunc(found, func(a, b ownGrowth) int { return cmp.Compare(b.gain, a.gain) })
	left := s.left(jobs)
	for _, g := range found {
		if more := g.cpus - g.job.actual; more <= left {
			left -= more
			g.job.target, g.job.reason, g.job.speedRatio = g.cpus, policy.ReasonOwnEpochs, g.speedRatio
		}
	}
}

// ownGrowth is a number of CPUs to which a job may grow by its own epochs.
type ownGrowth struct {
	job        *forecast
	cpus       int
	gain       float64 // lower bound of the logarithm of the ratio of the speeds, per CPU
	speedRatio float64 // mean
}

// ownGrowth returns the next number of CPUs to which the job may grow by its own epochs; nil if there
// is none.
func (f *forecast) ownGrowth() *ownGrowth {
	isPromised := !f.Deadline.IsZero() && f.isLikely(f.cpus)
	if len(f.seen) == 0 || f.target != f.actual || isPromised {
		return nil
	}
	next := slices.IndexFunc(f.Counts, func(n int) bool { return n > f.actual })
	if next < 0 || f.alternatives[f.Counts[next]] != nil {
		return nil
	}
	cpus := f.Counts[next]
	speeds := fit.Learn(ownFacts, f.seen, nil, fit.Shape{})
	if speeds == nil {
		return nil
	}
	mean, standardError := speeds.Gain(shapeOf(f.actual), shapeOf(cpus))
	lower := mean - fit.BoundFactor*standardError
	more := float64(cpus - f.actual)
	if math.Expm1(lower) < fit.GrowthGainRatio*more/float64(f.actual) {
		return nil
	}
	return &ownGrowth{job: f, cpus: cpus, gain: lower / more, speedRatio: math.Exp(mean)}
}
