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

// lossWindow is what was observed about a job in one round.
type lossWindow struct {
	Seconds  float64 // time between its two losses
	Before   float64 // mean loss of the previous window, divided by the largest loss of the job
	After    float64 // mean loss of this window, divided by the largest loss of the job
	CPURatio float64 // mean CPU in the window as a share of the node

	// The published rule ignores the fields below.

	IORatio     float64 // the job's share of the IO of the node; 0: unknown
	IOWaitRatio float64 // mean share of the node's CPUs that waited for IO
	IsDiverging bool    // the loss rises
}

// growth returns the progress per resource and second: G in the paper.
func (w *lossWindow) growth(isPublished bool) float64 {
	progress, used := w.Before-w.After, w.usedRatio()
	if isPublished {
		progress, used = max(progress, -progress), w.CPURatio
	}
	growth := progress / w.Seconds / used
	if !(w.Seconds > 0) || !(used > 0) || !(growth > 0) {
		return 0 // also for a loss that is not a number
	}
	return min(growth, maxGrowth)
}

// minIOWaitRatio is the IO-wait of a node above which its IO is scarcer than its CPU (resource
// policies, section 2.5).
const minIOWaitRatio = 0.15

// usedRatio returns the job's share of the scarcest resource: R in the paper.
func (w *lossWindow) usedRatio() float64 {
	if w.IOWaitRatio >= minIOWaitRatio && w.IORatio > 0 {
		return w.IORatio
	}
	return w.CPURatio
}

// maxGrowth bounds the growth of a job whose window or CPU is almost zero.
const maxGrowth = 1e6

// sharedJob is a job in a plan.
type sharedJob struct {
	*policy.Job
	window    *lossWindow // nil: the job has not shown two losses yet
	phase     phase       // before the window, and then after it
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
	jobs, kept := observeAll(v, o)
	sum, completed := 0.0, 0
	for _, j := range jobs {
		if j.observe(o); j.phase == completing {
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

// observeAll returns the jobs whose losses are known with their growth, and the shares of the others.
// Newcomers often grow fastest: they count as the fastest job, and as growing if no other job does, but
// have no growth with the published rule.
func observeAll(v *policy.View, o Options) (jobs []*sharedJob, kept float64) {
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
		if j.phase, j.window = observe(j.Losses, o); j.window != nil {
			j.growth = j.window.growth(o.IsPublished)
			largest = max(largest, j.growth)
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		if j.window == nil && !o.IsPublished {
			j.growth = cmp.Or(largest, o.threshold())
		}
	}
	slices.SortFunc(jobs, func(a, b *sharedJob) int { return cmp.Compare(a.ID, b.ID) })
	return jobs, kept
}

// observe updates the phase of a job by its window.
func (j *sharedJob) observe(o Options) {
	if w := j.window; w != nil && w.IsDiverging && !o.IsPublished {
		j.phase = watched
		return
	}
	j.phase = j.phase.next(j.window == nil || j.growth >= o.threshold())
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
