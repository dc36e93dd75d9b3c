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

// unitJob is a job of a node with whole units.
type unitJob struct {
	*policy.Job
	shared *sharedJob // nil: its losses are unknown
	units  int        // that it gets
}

// stepUnits turns shares into whole units. A job whose losses are unknown keeps its units.
func stepUnits(v *policy.View, planned []*sharedJob) (moves []policy.Move) {
	jobs, free := make([]unitJob, len(v.Jobs)), v.Units
	for i := range v.Jobs {
		j := unitJob{Job: &v.Jobs[i], units: max(v.Jobs[i].Floor, v.Jobs[i].Units)}
		if at := slices.IndexFunc(planned, func(s *sharedJob) bool { return s.Job == j.Job }); at >= 0 {
			j.shared, j.units = planned[at], j.Floor
		}
		free -= j.units
		jobs[i] = j
	}
	divideUnits(jobs, free)
	for _, j := range jobs {
		if j.units == j.Units {
			continue
		}
		m := policy.Move{Kind: policy.Resize, Job: j.ID, Units: j.units, Reason: policy.ReasonShare}
		if j.shared != nil && !j.shared.isNew {
			m.Growth = j.shared.growth
		}
		if isForDeadline := j.units == j.Floor && j.units > j.Units; j.shared != nil && !isForDeadline {
			m.Reason = j.shared.reason()
		}
		moves = append(moves, m)
	}
	return moves
}

// stayFactor favours the units that a job holds, so that a growth that scatters does not move units
// after each epoch.
const stayFactor = 1.2

// divideUnits gives free units, one step of a job's curve at a time, to the job that wants the most in
// relation to what it would hold: the divisor method of Sainte-Laguë.
func divideUnits(jobs []unitJob, free int) {
	for {
		var best *unitJob
		to, highest := 0, 0.0
		for i := range jobs {
			j := &jobs[i]
			next := nextUnits(j.Job, j.units)
			if j.shared == nil || next == 0 || next-j.units > free {
				continue
			}
			value := j.shared.share / (float64(j.units+next) / 2)
			if next <= j.Units {
				value *= stayFactor
			}
			if value > highest {
				best, to, highest = j, next, value
			}
		}
		if best == nil {
			return
		}
		free -= to - best.units
		best.units = to
	}
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
