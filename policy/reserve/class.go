package reserve

import "math"

// class is the state of the small or the large jobs, in units.
type class struct {
	part      int // of the cluster
	held      int
	pending   int // demanded by waiting jobs
	releases  int // of held ones, within the horizon
	isBlocked bool
}

// Indexes of the classes.
const (
	small = iota
	large
)

// classOf returns the class of a job. Without parts, all jobs are large.
func (p *Policy) classOf(r *request, capacity int) int {
	if p.o.Rule == RuleReserve && float64(max(r.Units, r.demand)) <= p.o.SmallRatio*float64(capacity) {
		return small
	}
	return large
}

// classes returns both classes with their parts.
func (p *Policy) classes(requests []request, capacity int) [2]class {
	var c [2]class
	for i := range requests {
		r := &requests[i]
		k := &c[p.classOf(r, capacity)]
		if r.Units == 0 {
			k.pending += r.demand
			continue
		}
		k.held += r.Units
		if p.expected(r) {
			k.releases += r.Units
		}
	}
	c[small].part = p.reserved(&c[small], &c[large], capacity)
	c[large].part = capacity - c[small].part
	return c
}

// reserved returns the part of the small jobs. It starts from the reserved ratio. If one class lacks
// units for its pending jobs and the other has some to spare, with the expected releases, those move.
func (p *Policy) reserved(s, l *class, capacity int) int {
	if p.o.Rule != RuleReserve {
		return 0
	}
	part := int(math.Round(min(max(p.o.ReservedRatio, 0), 1) * float64(capacity)))
	lackSmall := s.pending - s.spare(part)
	lackLarge := l.pending - l.spare(capacity-part)
	switch {
	case lackSmall > 0 && lackLarge < 0:
		part += min(lackSmall, -lackLarge)
	case lackLarge > 0 && lackSmall < 0:
		part -= min(lackLarge, -lackSmall)
	}
	return min(max(part, 0), capacity)
}

// spare returns the units of a part that are free, or will be within the horizon.
func (c *class) spare(part int) int {
	return max(0, part-c.held) + c.releases
}
