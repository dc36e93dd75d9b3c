package deadline

const (
	firstStepSeconds = 120
	stepGrowth       = 1.25
	maxSteps         = 100 // they reach 19,000 years
)

// grid is a step function of the used capacity, by time from the start of a plan. The steps grow
// geometrically, so their number depends on the logarithm of the longest window only.
//
// Tasks must be placed in order of due time: what earlier tasks use in the step of a later due time
// is then used before that time.
type grid struct {
	units float64   // capacity
	edges []float64 // seconds; step i is from edges[i] to edges[i+1]
	used  []float64 // unit-seconds of each step
}

// reset empties the grid and makes it reach a horizon.
func (g *grid) reset(units, horizonSeconds float64) {
	g.units = units
	g.edges = append(g.edges[:0], 0)
	g.used = g.used[:0]
	for width := float64(firstStepSeconds); len(g.used) < maxSteps; width *= stepGrowth {
		last := g.edges[len(g.edges)-1] + width
		g.edges = append(g.edges, last)
		g.used = append(g.used, 0)
		if last >= horizonSeconds {
			return
		}
	}
}

// place reserves the smallest constant number of units, as far as they are free, with which a task
// completes its work by its due time. A task for which that is impossible reserves the largest
// useful number, and has missing work.
func (g *grid) place(t *task) {
	t.level, t.segment, t.share, t.area, t.missing = 0, 0, 0, 0, 0
	if t.isIdle() || t.isTimeless() {
		return
	}
	if t.due <= 0 {
		t.missing, t.segment = t.work, len(t.hull)-1
		return
	}

	k := 0
	for k < len(t.hull)-1 && t.hull[k].Rate*t.due < t.work {
		k++
	}
	below := -1.0 // work at the point before k; negative: unknown
	done := g.workAt(t, float64(t.hull[k].Units))
	for done < t.work && k < len(t.hull)-1 {
		k++
		below, done = done, g.workAt(t, float64(t.hull[k].Units))
	}
	t.segment = k
	if done < t.work {
		t.missing = t.work - done
		t.level = float64(t.hull[k].Units)
	} else {
		t.level = g.levelBetween(t, below, done)
	}
	g.reserve(t)
}

// levelBetween interpolates on the task's segment. Work is a concave function of the level, so the
// result suffices.
func (g *grid) levelBetween(t *task, below, done float64) float64 {
	low, high := t.bounds()
	if below < 0 {
		below = g.workAt(t, low)
	}
	if done <= below {
		return high
	}
	return low + (high-low)*min(1, max(0, (t.work-below)/(done-below)))
}

// bounds returns the numbers of units at the ends of the task's segment.
func (t *task) bounds() (low, high float64) {
	if t.segment > 0 {
		low = float64(t.hull[t.segment-1].Units)
	}
	return low, float64(t.hull[t.segment].Units)
}

// workAt returns the work that a task completes by its due time with at most this many units.
func (g *grid) workAt(t *task, level float64) float64 {
	if level <= 0 {
		return 0
	}
	full := t.hull.At(level)
	total := 0.0
	for i, used := range g.used {
		length := min(g.edges[i+1], t.due) - g.edges[i]
		if length <= 0 {
			break
		}
		if free := g.units - used/length; free >= level {
			total += full * length
		} else if free > 0 {
			total += t.hull.At(free) * length
		}
	}
	return total
}

func (g *grid) reserve(t *task) {
	for i := range g.used {
		length := min(g.edges[i+1], t.due) - g.edges[i]
		if length <= 0 {
			break
		}
		units := min(t.level, max(0, g.units-g.used[i]/length))
		g.used[i] += units * length
		t.area += units * length
		if i == 0 {
			t.share = units
		}
	}
}

// utilization returns the ratio of the capacity that is used before a time.
func (g *grid) utilization(seconds float64) float64 {
	used, length := 0.0, 0.0
	for i := range g.used {
		until := min(g.edges[i+1], seconds)
		if until <= g.edges[i] {
			break
		}
		used += min(g.used[i], g.units*(until-g.edges[i]))
		length = until
	}
	if used <= 0 {
		return 0
	}
	return used / (g.units * length)
}

// maxTriage bounds how many tasks a plan gives up in favour of others, and so its time.
const maxTriage = 20

// lostRatio is the ratio of the remaining work above which a job that does not fit counts as lost. Below
// it, the margins may suffice.
const lostRatio = 0.03

type filled struct {
	missing float64 // sum of the missing ratios of the work
	lost    int     // tasks that do not fit
}

// fill places tasks, which are in order of due time. With triage, tasks that make others lost are
// given up and placed nowhere.
func (s *plan) fill(tasks []*task, units float64, triage bool) (f filled) {
	horizon := 1.0
	for _, t := range tasks {
		t.isLost = false
		if !t.isTimeless() {
			horizon = max(horizon, t.due)
		}
	}
	for given := 0; ; given++ {
		s.grid.reset(units, horizon)
		var victim *task
		f, victim = s.placeAll(tasks, triage && given < maxTriage)
		if victim == nil {
			return f
		}
		victim.giveUp()
	}
}

// placeAll places the tasks that are not lost. It stops at a task that does not fit and returns the
// task to give up for it, if asked to.
func (s *plan) placeAll(tasks []*task, triage bool) (f filled, victim *task) {
	for i, t := range tasks {
		if t.isLost {
			f.missing++
			f.lost++
			continue
		}
		s.grid.place(t)
		if t.missing <= 0 {
			continue
		}
		f.missing += t.missing / t.work
		if t.missing <= lostRatio*t.work {
			continue
		}
		if triage {
			return f, victimOf(tasks[:i+1])
		}
		f.lost++
	}
	return f, nil
}

// victimOf returns the task with the most reserved unit-seconds, or the last one if it cannot be
// saved.
func victimOf(tasks []*task) *task {
	victim := tasks[len(tasks)-1]
	if victim.fastest().Rate*victim.due < victim.work {
		return victim
	}
	for _, t := range tasks {
		if !t.isLost && t.area > victim.area {
			victim = t
		}
	}
	return victim
}

func (t *task) giveUp() {
	t.isLost = true
	t.missing = t.work
	t.level, t.share, t.area = 0, 0, 0
	t.segment = len(t.hull) - 1
}
