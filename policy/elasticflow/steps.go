package elasticflow

import (
	"cmp"
	"math"
	"slices"

	"courier/policy"
)

// freeStep is a time in which the number of free units is constant. It lasts to the next one.
type freeStep struct {
	start float64 // seconds from now
	free  int
}

// freeSteps are the free units of the future; the last step does not end.
type freeSteps []freeStep

func (s freeSteps) end(i int) float64 {
	if i+1 < len(s) {
		return s[i+1].start
	}
	return math.Inf(1)
}

// split makes a time the start of a step and returns its index.
func (s *freeSteps) split(at float64) int {
	i, found := slices.BinarySearchFunc(*s, at, func(a freeStep, at float64) int {
		return cmp.Compare(a.start, at)
	})
	if !found {
		*s = slices.Insert(*s, i, freeStep{at, (*s)[i-1].free})
	}
	return i
}

// minimumShare is a job in a plan.
type minimumShare struct {
	job    *policy.Job
	curve  policy.Curve // rising part, numbers of units that the job may hold
	work   float64
	window float64 // seconds to the deadline

	isSatisfied bool
	units       int     // from now on
	until       float64 // seconds until the planned number changes first
}

// place plans a job in the free units and takes them.
func (s *freeSteps) place(h *minimumShare) {
	h.isSatisfied, h.units, h.until = false, 0, math.Inf(1)
	if h.work <= 0 || len(h.curve) == 0 {
		h.isSatisfied = h.work <= 0
		return
	}
	if h.window > 0 {
		for k := range h.curve {
			if from, ok := s.backwards(h, h.curve[k].Units); ok {
				h.isSatisfied = true
				below := 0
				if k > 0 {
					below = h.curve[k-1].Units
				}
				s.take(h, below, from, h.curve[k].Units)
				return
			}
		}
	}
	s.take(h, 0, 0, h.curve[len(h.curve)-1].Units)
}

// backwards goes from the deadline to now with at most this many units and returns the start of the
// step at which the work is done.
func (s *freeSteps) backwards(h *minimumShare, units int) (float64, bool) {
	done := 0.0
	for i := len(*s) - 1; i >= 0; i-- {
		start, end := (*s)[i].start, min(s.end(i), h.window)
		if end <= start {
			continue
		}
		done += h.curve.Within(min(units, (*s)[i].free)).Rate * (end - start)
		if done >= h.work {
			return start, true
		}
	}
	return 0, false
}

// take reserves at most below units before a time and at most units after it, until the work is
// done. An unsatisfied job may end after its deadline.
func (s *freeSteps) take(h *minimumShare, below int, from float64, units int) {
	left := h.work
	for i := 0; i < len(*s) && left > 0; i++ {
		limit := units
		if (*s)[i].start < from {
			limit = below
		}
		p := h.curve.Within(min(limit, (*s)[i].free))
		if i == 0 {
			h.units = p.Units
		} else if p.Units != h.units && math.IsInf(h.until, 1) {
			h.until = (*s)[i].start
		}
		if p.Units == 0 {
			continue
		}
		start, end := (*s)[i].start, s.end(i)
		if last := start + left/p.Rate; last < end && last > start {
			s.split(last)
			end = last
		}
		left -= p.Rate * (end - start)
		(*s)[i].free -= p.Units
	}
}
