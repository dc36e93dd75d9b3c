// Package quality gives CPU to the jobs whose loss falls fastest.
//
// It implements FlowCon (Zheng et al., ICPP 2019) as its code was published, and a variant for
// losses that arrive at irregular times. A job grows if its progress per CPU exceeds a threshold.
// A job that does not grow twice in a row gives up CPU, down to a floor, and one good round brings
// it back. The last reports of a job show its phase, so the policy keeps no state.
//
// Weights divide a node without units (policy.View.Units); jobs that hold whole CPUs get those that
// come nearest to their shares.
package quality

import (
	"slices"

	"courier/policy"
)

// Options of a policy.
type Options struct {
	// Threshold is the growth that a job must reach, per second: alpha in the paper. Default: that of a
	// loss which falls evenly, from its largest value to zero, during the whole work of a mean job.
	// An absolute threshold fits one length of jobs: 0.01, which holds while the lengths are unknown,
	// that of about 100 seconds.
	Threshold float64
	// Floor divides the smallest share: 1 / (Floor * jobs). It is beta in the paper. Default: 2, and
	// bounded to 1.1 to 8. With IsPublished 0 means 1 + 1 / jobs.
	Floor float64
	// IsPublished plans as the published code: absolute progress, no floor for growing jobs, no
	// normalization, and newcomers have no growth. Shares are caps.
	IsPublished bool
}

// Policy is the policy. It decides nothing about a queue, and is safe for concurrent use.
type Policy struct{ o Options }

// New returns the policy.
func New(o Options) *Policy { return &Policy{o} }

// Plan implements policy.Policy.
func (p *Policy) Plan(v *policy.View) (moves []policy.Move) {
	jobs, _ := p.divide(v)
	if v.Units > 0 {
		return stepUnits(v, jobs)
	}
	for _, j := range jobs {
		if j.share != j.Share {
			m := policy.Move{Kind: policy.Weigh, Job: j.ID, Share: j.share, Reason: j.reason()}
			moves = append(moves, m)
		}
	}
	return moves
}

// IsIdle reports whether no job grows any more, so that the policy need not be asked as often.
func (p *Policy) IsIdle(v *policy.View) bool {
	_, isIdle := p.divide(v)
	return isIdle
}

// evenGrowth returns the default threshold; 0 if the work of no job is known.
func evenGrowth(v *policy.View) float64 {
	work, n := 0.0, 0
	for i := range v.Jobs {
		l, epochs := v.Jobs[i].Losses, v.Jobs[i].Epochs
		if l == nil || len(l.Reports) == 0 || epochs == 0 {
			continue
		}
		mean := 0.0 // node-seconds of an epoch
		for _, r := range l.Reports {
			mean += r.Seconds * r.CPURatio / float64(len(l.Reports))
		}
		work, n = work+mean*float64(epochs), n+1
	}
	if !(work > 0) {
		return 0
	}
	return float64(n) / work
}

// reason returns why a job gets its share.
func (j *sharedJob) reason() policy.Reason {
	switch {
	case j.isNew:
		return policy.ReasonNewcomer
	case j.phase == watched:
		return policy.ReasonWatched
	case j.phase == completing:
		return policy.ReasonCompleting
	}
	return policy.ReasonGrowing
}

// stepUnits turns shares into whole units: each step of a job's curve goes to the job that wants the most
// in relation to what it would hold. A job whose losses are unknown keeps its units.
func stepUnits(v *policy.View, planned []*sharedJob) (moves []policy.Move) {
	shared, units, free := make([]*sharedJob, len(v.Jobs)), make([]int, len(v.Jobs)), v.Units
	for i := range v.Jobs {
		j := &v.Jobs[i]
		units[i] = max(j.Floor, j.Units)
		if at := slices.IndexFunc(planned, func(s *sharedJob) bool { return s.Job == j }); at >= 0 {
			shared[i], units[i] = planned[at], j.Floor
		}
		free -= units[i]
	}
	policy.Redivide(v.Jobs, units, free, func(i, units int) (to int, value float64) {
		if to = nextUnits(&v.Jobs[i], units); shared[i] == nil || to == 0 {
			return 0, 0
		}
		return to, shared[i].share / (float64(units+to) / 2)
	})

	for i, units := range units {
		j := &v.Jobs[i]
		if units == j.Units {
			continue
		}
		m := policy.Move{Kind: policy.Resize, Job: j.ID, Units: units, Reason: policy.ReasonShare}
		if shared[i] != nil && !shared[i].isNew {
			m.Growth = shared[i].growth
		}
		if isForDeadline := units == j.Floor && units > j.Units; shared[i] != nil && !isForDeadline {
			m.Reason = shared[i].reason()
		}
		moves = append(moves, m)
	}
	return moves
}

// nextUnits returns the next number of units with which the job is expected to be faster; 0 if there is
// none.
func nextUnits(j *policy.Job, units int) int {
	for _, p := range j.Options[0].Curve {
		if p.Units > units && j.ExpectedSeconds(p.Units) < j.ExpectedSeconds(units) {
			return p.Units
		}
	}
	return 0
}
