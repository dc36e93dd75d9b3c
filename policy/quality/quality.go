// Package quality gives CPU to the jobs whose loss falls fastest.
//
// It implements FlowCon (Zheng et al., ICPP 2019) as its code was published, and a variant for
// losses that arrive at irregular times. A job grows if its progress per CPU exceeds a threshold.
// A job that does not grow twice in a row gives up CPU, down to a floor, and one good round brings
// it back. Plan is a pure function: the caller keeps the state of the jobs.
package quality

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Phase is what the last rounds showed about a job.
type Phase int

// The phases.
const (
	Growing    Phase = iota // its progress per CPU reaches the threshold, or is not known yet
	Watched                 // one round below the threshold
	Completing              // two rounds or more below the threshold
)

// Window is what was observed about a job in one round.
type Window struct {
	Seconds  float64 // time between its two losses
	Before   float64 // mean loss of the previous window, divided by the largest loss of the job
	After    float64 // mean loss of this window, divided by the largest loss of the job
	CPURatio float64 // mean CPU in the window as a share of the node
}

// growth returns the progress per CPU and second: G in the paper.
func (w *Window) growth(isSigned bool) float64 {
	progress := w.Before - w.After
	if !isSigned {
		progress = max(progress, -progress)
	}
	growth := progress / w.Seconds / w.CPURatio
	if !(w.Seconds > 0) || !(w.CPURatio > 0) || !(growth > 0) {
		return 0 // also for a loss that is not a number
	}
	return min(growth, maxGrowth)
}

// maxGrowth bounds the growth of a job whose window or CPU is almost zero.
const maxGrowth = 1e6

// JobState is the state of a job between two rounds.
type JobState struct {
	Phase Phase
	Share float64 // of the node, as planned in the last round
}

// Options of Plan.
type Options struct {
	// Threshold is the growth that a job must reach, per second: alpha in the paper. Default: 0.01.
	Threshold float64
	// Floor divides the smallest share: 1 / (Floor * jobs). It is beta in the paper. Default: 2, and
	// bounded to 1.1 to 8. With IsPublished 0 means 1 + 1 / jobs.
	Floor float64
	// IsPublished plans as the published code: absolute progress, no floor for growing jobs, no
	// normalization, and newcomers have no growth.
	IsPublished bool
}

// Plan returns the new states of the jobs. A nil window means that a job has not shown two losses
// yet. With the published rule, shares are caps, and isIdle reports that all jobs are completing:
// every cap is the whole node, and the caller doubles the interval. Otherwise the shares sum to 1, and
// stay as they are if none of them would change by 0.05, nor by 20 % of itself.
func Plan(
	before map[string]JobState, windows map[string]*Window, o Options,
) (after map[string]JobState, isIdle bool) {
	n := len(windows)
	if n == 0 {
		return nil, false
	}
	names := slices.Sorted(maps.Keys(windows))
	growth := growthOf(names, windows, o.IsPublished)
	threshold := cmp.Or(o.Threshold, 0.01)
	after = make(map[string]JobState, n)
	sum, completing := 0.0, 0
	for _, name := range names {
		s := before[name]
		isNew := windows[name] == nil
		s.Phase = s.Phase.next(isNew || growth[name] >= threshold)
		if s.Phase == Completing {
			completing++
		}
		sum += growth[name]
		after[name] = s
	}

	if completing == n || sum == 0 {
		share := 1 / float64(n)
		if o.IsPublished {
			share = 1
		}
		for name, s := range after {
			s.Share = share
			after[name] = s
		}
		keepSmall(before, after, o)
		return after, completing == n
	}
	floor := o.floor(n)
	for name, s := range after {
		s.Share = s.nextShare(growth[name]/sum, floor, o.IsPublished)
		after[name] = s
	}
	if !o.IsPublished {
		fill(after, names, floor)
	}
	keepSmall(before, after, o)
	return after, false
}

// Hysteresis of the shares (resource policies, section 1.3).
const (
	minShareOfNode = 0.05
	minShareOfSelf = 0.2
)

// keepSmall keeps the shares of the last round if none of them would change enough. It leaves those of
// the published rule, and those that break a rule: of other jobs, or for another floor.
func keepSmall(before, after map[string]JobState, o Options) {
	if o.IsPublished || len(before) != len(after) {
		return
	}
	sum := 0.0
	for name, a := range after {
		b, isOld := before[name]
		change := math.Abs(a.Share - b.Share)
		if !isOld || !(b.Share >= o.floor(len(after))) ||
			change >= minShareOfNode || change >= minShareOfSelf*b.Share {
			return
		}
		sum += b.Share
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		return
	}
	for name, a := range after {
		a.Share = before[name].Share
		after[name] = a
	}
}

// Bounds of Options.Floor (resource policies, section 2.4).
const (
	leastBeta = 1.1
	mostBeta  = 8
)

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

// growthOf returns the growth of each job. Newcomers often grow fastest: they count as the fastest
// job, but have no growth with the published rule.
func growthOf(names []string, windows map[string]*Window, isPublished bool) map[string]float64 {
	growth, largest := map[string]float64{}, 0.0
	for _, name := range names {
		if w := windows[name]; w != nil {
			growth[name] = w.growth(!isPublished)
			largest = max(largest, growth[name])
		}
	}
	for _, name := range names {
		if windows[name] == nil && !isPublished {
			growth[name] = largest
		}
	}
	return growth
}

// next returns the phase after a round.
func (p Phase) next(isGrowing bool) Phase {
	switch {
	case isGrowing:
		return Growing
	case p == Growing:
		return Watched
	}
	return Completing
}

// nextShare returns the share of a job with a part of the growth of all jobs.
func (s *JobState) nextShare(part, floor float64, isPublished bool) float64 {
	switch {
	case s.Phase == Completing:
		return max(part, floor)
	case s.Phase == Watched && s.Share > 0 && s.Share <= 1:
		return s.Share
	case isPublished && part == 0:
		return 1 // a limit of 0 is no limit
	}
	return part
}

// fill raises shares to the floor and scales the others, so that all sum to 1.
func fill(states map[string]JobState, names []string, floor float64) {
	atFloor := map[string]bool{}
	for {
		rest, sum := 1.0, 0.0
		for _, name := range names {
			if atFloor[name] {
				rest -= floor
			} else {
				sum += states[name].Share
			}
		}
		isChanged := false
		for _, name := range names {
			s := states[name]
			switch {
			case atFloor[name]:
				s.Share = floor
			case sum > 0:
				s.Share *= rest / sum
			default:
				s.Share = rest / float64(len(names)-len(atFloor))
			}
			states[name] = s
		}
		for _, name := range names {
			if !atFloor[name] && states[name].Share < floor {
				atFloor[name], isChanged = true, true
			}
		}
		if !isChanged {
			return
		}
	}
}
