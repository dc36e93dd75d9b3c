package quality

import (
	"cmp"
	"maps"
	"math"
	"slices"
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
	IsStale     bool    // the job is silent, so that the window is too old to plan from
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

// jobState is the state of a job between two rounds.
type jobState struct {
	phase   phase
	share   float64 // of the node, as planned in the last round
	isStale bool    // the window was too old, so that the job kept its phase and share
}

// divideNode returns the new states of the jobs. A nil window means that a job has not shown two losses
// yet. With the published rule, shares are caps, and isIdle reports that all jobs are completing:
// every cap is the whole node, and the caller doubles the interval. Otherwise the shares sum to 1. A stale
// job keeps its share as far as the floor of the others allows. A diverging job is watched.
func divideNode(
	before map[string]jobState, windows map[string]*lossWindow, o Options,
) (after map[string]jobState, isIdle bool) {
	if len(windows) == 0 {
		return nil, false
	}
	jobs := jobsOf(before, windows, o)
	sum, completed := 0.0, 0
	for _, j := range jobs {
		j.observe(j.window, j.growth >= o.threshold(), o.IsPublished)
		if j.phase == completing {
			completed++
		}
		sum += j.growth
	}

	floor, areEqual := o.floor(len(jobs)), completed == len(jobs) || sum == 0
	for _, j := range jobs {
		switch {
		case j.keepsShare():
		case areEqual:
			j.share = 1 // each cap is the whole node; fill divides it otherwise
		default:
			j.share = j.nextShare(j.growth/sum, floor, o.IsPublished)
		}
	}
	if !o.IsPublished {
		fill(jobs, floor)
	}
	after = map[string]jobState{}
	for _, j := range jobs {
		after[j.name] = j.jobState
	}
	return after, completed == len(jobs)
}

// plannedJob is a job in a plan.
type plannedJob struct {
	jobState
	name      string
	window    *lossWindow
	growth    float64
	isAtFloor bool
}

// jobsOf returns the jobs by name, with their growth. Newcomers often grow fastest: they count as the
// fastest job, and as growing if no other job does, but have no growth with the published rule.
func jobsOf(before map[string]jobState, windows map[string]*lossWindow, o Options) (jobs []*plannedJob) {
	largest := 0.0
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		j := &plannedJob{jobState: before[name], name: name, window: windows[name]}
		if w := j.window; w != nil && (o.IsPublished || !w.IsStale) {
			j.growth = w.growth(o.IsPublished)
			largest = max(largest, j.growth)
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		if j.window == nil && !o.IsPublished {
			j.growth = cmp.Or(largest, o.threshold())
		}
	}
	return jobs
}

// observe updates the phase of a job by its window; nil if the job has not shown two losses yet.
func (s *jobState) observe(w *lossWindow, isGrowing, isPublished bool) {
	if s.isStale = false; w == nil || isPublished {
		s.phase = s.phase.next(w == nil || isGrowing)
		return
	}
	switch {
	case w.IsStale:
		s.isStale = true
	case w.IsDiverging:
		s.phase = watched
	default:
		s.phase = s.phase.next(isGrowing)
	}
}

// keepsShare reports whether a job keeps the share of its last round.
func (s *jobState) keepsShare() bool { return s.isStale && s.share > 0 && s.share <= 1 }

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
func (s *jobState) nextShare(part, floor float64, isPublished bool) float64 {
	switch {
	case s.phase == completing:
		return max(part, floor)
	case s.phase == watched && s.share > 0 && s.share <= 1:
		return s.share
	case isPublished && part == 0:
		return 1 // a limit of 0 is no limit
	}
	return part
}

// fill raises shares to the floor and scales the others, so that all sum to 1. Jobs that keep their
// shares are scaled only if the others would fall below the floor, or if there are no others.
func fill(jobs []*plannedJob, floor float64) {
	var kept, open []*plannedJob
	above := 0.0 // what the kept shares have above the floor
	for _, j := range jobs {
		if !j.keepsShare() {
			open = append(open, j)
			continue
		}
		kept = append(kept, j)
		above += max(j.share, floor) - floor
	}
	if len(open) == 0 {
		divide(kept, 1, floor)
		return
	}
	rest, most := 1.0, 1-floor*float64(len(jobs))
	for _, j := range kept {
		if j.share = max(j.share, floor); above > most {
			j.share = floor + (j.share-floor)*most/above
		}
		rest -= j.share
	}
	divide(open, rest, floor)
}

// divide divides a share of the node among jobs in proportion to their shares, but gives each at least
// the floor.
func divide(jobs []*plannedJob, share, floor float64) {
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
