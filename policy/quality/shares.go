package quality

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
)

// phase is what the last rounds showed about a job.
type phase int

// The phases.
const (
	growing    phase = iota // its progress per CPU reaches the threshold, or is not known yet
	watched                 // one round below the threshold
	completing              // two rounds or more below the threshold
)

// sharedJob is a job in a plan.
type sharedJob struct {
	*policy.Job
	isNew     bool // it has not shown two losses yet
	phase     phase
	growth    float64
	share     float64 // present, and then planned
	isAtFloor bool
}

// divide returns the planned shares of the jobs whose losses are known, by ID. Others keep theirs. With
// the published rule, shares are caps, and isIdle reports that all jobs are completing: every cap is the
// whole node, and the caller doubles the interval. Otherwise the shares sum to what the other jobs leave.
func (p *Policy) divide(v *policy.View) (jobs []*sharedJob, isIdle bool) {
	o := p.o
	if o.Threshold == 0 {
		o.Threshold = evenGrowth(v)
	}
	jobs, kept := observe(v, o)
	sum, completed := 0.0, 0
	for _, j := range jobs {
		if j.phase == completing {
			completed++
		}
		sum += j.growth
	}
	isIdle = len(jobs) > 0 && completed == len(jobs)

	floor := o.floor(len(v.Jobs))
	for _, j := range jobs {
		if isIdle || sum == 0 {
			j.share = 1 // each cap is the whole node; fill divides it otherwise
		} else {
			j.share = j.nextShare(j.growth/sum, floor, o.IsPublished)
		}
	}
	if !o.IsPublished {
		fill(jobs, max(1-kept, floor*float64(len(jobs))), floor)
	}
	return jobs, isIdle
}

// observe returns the jobs whose losses are known with their growth and phase, and the shares of the
// others. Newcomers often grow fastest: they count as the fastest job, and as growing if no other job does,
// but have no growth with the published rule.
func observe(v *policy.View, o Options) (jobs []*sharedJob, kept float64) {
	largest := 0.0
	for i := range v.Jobs {
		j := &sharedJob{Job: &v.Jobs[i], share: v.Jobs[i].Share}
		if j.Losses == nil || isStale(j.Losses) {
			kept += j.Share
			continue
		}
		if v.Units > 0 {
			j.share = float64(j.Units) / float64(v.Units)
		}
		windows := windowsOf(j.Losses)
		for i := range windows {
			j.growth = windows[i].growth(o.IsPublished)
			j.phase = j.phase.next(j.growth >= o.threshold())
		}
		if isDiverging(windows) && !o.IsPublished {
			j.phase = watched
		}
		j.isNew, largest = len(windows) == 0, max(largest, j.growth)
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		if j.isNew && !o.IsPublished {
			j.growth = cmp.Or(largest, o.threshold())
		}
	}
	slices.SortFunc(jobs, func(a, b *sharedJob) int { return cmp.Compare(a.ID, b.ID) })
	return jobs, kept
}

// Bounds of Options.Floor (resource policies, section 2.4).
const (
	leastBeta = 1.1
	mostBeta  = 8
)

func (o *Options) threshold() float64 { return cmp.Or(o.Threshold, 0.01) }

// floor returns the smallest share of n jobs.
func (o *Options) floor(n int) float64 {
	if o.IsPublished && o.Floor == 0 {
		return 1 / float64(n+1) // beta = 1 + 1/n
	}
	beta := min(max(cmp.Or(o.Floor, 2), leastBeta), mostBeta)
	if math.IsNaN(beta) {
		beta = 2
	}
	return 1 / (beta * float64(n))
}

// next returns the phase after a round.
func (p phase) next(isGrowing bool) phase {
	switch {
	case isGrowing:
		return growing
	case p == growing:
		return watched
	}
	return completing
}

// nextShare returns the share of a job with a part of the growth of all jobs.
func (j *sharedJob) nextShare(part, floor float64, isPublished bool) float64 {
	switch {
	case j.phase == completing:
		return max(part, floor)
	case j.phase == watched && j.share > 0 && j.share <= 1:
		return j.share
	case isPublished && part == 0:
		return 1 // a limit of 0 is no limit
	}
	return part
}

// fill scales shares so that they sum to a share of the node, but gives each job at least the floor.
func fill(jobs []*sharedJob, share, floor float64) {
	for isChanged := true; isChanged; {
		rest, sum, above := share, 0.0, 0
		for _, j := range jobs {
			if j.isAtFloor {
				rest -= floor
				continue
			}
			sum += j.share
			above++
		}
		isChanged = false
		for _, j := range jobs {
			switch {
			case j.isAtFloor:
				j.share = floor
			case sum > 0:
				j.share *= rest / sum
			default:
				j.share = rest / float64(above)
			}
			if !j.isAtFloor && j.share < floor {
				j.isAtFloor, isChanged = true, true
			}
		}
	}
}
