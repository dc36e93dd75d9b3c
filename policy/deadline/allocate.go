package deadline

import "container/heap"

const (
	lostValue     = 0.01 // of units for a job without a deadline, or one that is lost
	urgentFactor  = 10
	missingFactor = 2
	// A job whose level is high on its segment gets the segment before others at their minimum
	// share: 0.9 to 1.1.
	roundingBase, roundingSlope = 0.9, 0.2
)

// allocate chooses the units of each task from the start of the plan: its share, rounded down to a
// point of the hull, and then the steps with the highest value.
func (s *plan) allocate() {
	free := s.view.Units
	for _, t := range s.tasks {
		t.units, t.point = 0, -1
		for k, p := range t.hull {
			if float64(p.Units) <= t.share+tolerance && p.Units <= free {
				t.units, t.point = p.Units, k
			}
		}
		if s.mustNotRoundDown(t) && t.hull[t.point+1].Units <= free {
			t.point++
			t.units = t.hull[t.point].Units
		}
		free -= t.units
	}
	s.leftOver(free)
}

// mustNotRoundDown reports whether a job that meets its deadline with the units that it holds would
// miss it with those of its rounded share: it cannot get more before the next moment, which is too
// late.
func (s *plan) mustNotRoundDown(t *task) bool {
	if t.isIdle() || t.isLost || t.units >= t.current || t.point+1 >= len(t.hull) {
		return false
	}
	now, rounded := t.curve.Rate(t.current), t.curve.Rate(t.units)
	fastest := t.fastest().Rate
	slot := s.view.Slot.Seconds()
	return now*t.window >= t.work && rounded*t.window < t.work &&
		rounded*slot+fastest*(t.window-slot) < t.work
}

// leftOver gives the free units to the steps with the highest value.
func (s *plan) leftOver(free int) {
	next := make(gainHeap, 0, len(s.tasks))
	for i := range s.tasks {
		next = s.appendStep(next, i)
	}
	heap.Init(&next)
	for len(next) > 0 {
		i := next[0].task
		t := s.tasks[i]
		if more := t.hull[t.point+1].Units - t.units; more <= free {
			free -= more
			t.point++
			t.units = t.hull[t.point].Units
			if following := s.appendStep(nil, i); len(following) > 0 {
				next[0] = following[0]
				heap.Fix(&next, 0)
				continue
			}
		}
		heap.Pop(&next)
	}
}

// gainStep is the step of a task to the next point of its hull.
type gainStep struct {
	task  int
	value float64
}

func (s *plan) appendStep(dst gainHeap, i int) gainHeap {
	t := s.tasks[i]
	if t.work <= 0 || t.point+1 >= len(t.hull) {
		return dst
	}
	return append(dst, gainStep{i, s.value(t)})
}

// gainHeap is a heap with the highest value first, and of equal values the task that is due first.
type gainHeap []gainStep

func (s gainHeap) Len() int      { return len(s) }
func (s gainHeap) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *gainHeap) Push(v any)   { *s = append(*s, v.(gainStep)) }
func (s gainHeap) Less(i, j int) bool {
	if s[i].value != s[j].value {
		return s[i].value > s[j].value
	}
	return s[i].task < s[j].task
}

func (s *gainHeap) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// value returns the unit-seconds that a task needs less later, per unit-second of its next step.
func (s *plan) value(t *task) float64 {
	next := t.hull.Slope(t.point + 1)
	if t.isLost || t.isTimeless() {
		return lostValue * next / t.hull.Slope(0)
	}
	v := next / t.hull.Slope(t.segment)
	if t.point+1 == t.segment {
		low, high := t.bounds()
		v *= roundingBase + roundingSlope*(t.level-low)/(high-low)
	}
	if t.patience(t.units) < s.o.urgent.Seconds() {
		v *= urgentFactor
	}
	if t.missing > 0 {
		v *= missingFactor
	}
	return v
}
