package trainer

import (
	"container/list"

	"courier/schemas"
)

// configuration is what the owner of a run and the cluster fixed: runs of one configuration
// teach the same.
type configuration struct {
	model       string
	dataset     string
	batch, cpus uint32
	jobs        int              // concurrent jobs, rounded
	hardware    schemas.Hardware // of the most loaded node, rounded
}

// rareRuns is the number of runs up to which a configuration is not thinned for others; then the
// configuration that was not run for longest gives way.
const rareRuns = 8

// shelf holds the ended runs of a Past by configuration and drops runs beyond its limits:
// beyond those of one configuration its oldest, beyond those of all the oldest of the
// configuration that has the most. So a rare configuration outlives many runs of a frequent one,
// and names that never return do not displace what is still run.
type shelf struct {
	limits         *Limits
	configurations map[configuration]*shelved
	sizes          []*list.List // of *shelved by their number of runs, the longest of that size first
	largest        int          // index of the last list that may hold any
	used           *list.List   // of *shelved, the one that was not run for longest first
	runs, epochs   int
}

// shelved are the runs of one configuration.
type shelved struct {
	of   configuration
	runs *list.List    // of *run, in the order in which they ended
	at   *list.Element // in sizes
	used *list.Element // in shelf.used
}

func newShelf(l *Limits) *shelf {
	return &shelf{limits: l, configurations: map[configuration]*shelved{}, used: list.New()}
}

// add takes a run that has ended, and returns those that are dropped for it.
func (s *shelf) add(r *run, of configuration) (dropped []*run) {
	c := s.configurations[of]
	if c == nil {
		c = &shelved{of: of, runs: list.New()}
		s.configurations[of] = c
		c.used = s.used.PushBack(c)
	}
	s.used.MoveToBack(c.used)
	r.shelf, r.onShelf = c, c.runs.PushBack(r)
	s.runs, s.epochs = s.runs+1, s.epochs+len(r.epochs)
	s.resize(c, c.runs.Len()-1)
	for c.runs.Len() > s.limits.SettingRuns {
		dropped = append(dropped, s.dropOldest(c))
	}
	for s.runs > s.limits.Runs || s.epochs > s.limits.Epochs && s.runs > 1 {
		dropped = append(dropped, s.dropOldest(s.spare()))
	}
	return dropped
}

// remove takes a run off the shelf.
func (s *shelf) remove(r *run) {
	c := r.shelf
	before := c.runs.Len()
	c.runs.Remove(r.onShelf)
	r.shelf, r.onShelf = nil, nil
	s.runs, s.epochs = s.runs-1, s.epochs-len(r.epochs)
	s.resize(c, before)
	if c.runs.Len() == 0 {
		delete(s.configurations, c.of)
		s.used.Remove(c.used)
	}
}

func (s *shelf) dropOldest(c *shelved) *run {
	r := c.runs.Front().Value.(*run)
	s.remove(r)
	return r
}

// spare returns the configuration that gives way: the one with the most runs, of several the one
// that has had that many for the longest time. If all are rare, it is the one that was not run
// for longest.
func (s *shelf) spare() *shelved {
	for s.sizes[s.largest] == nil || s.sizes[s.largest].Len() == 0 {
		s.largest--
	}
	if s.largest <= rareRuns {
		return s.used.Front().Value.(*shelved)
	}
	return s.sizes[s.largest].Front().Value.(*shelved)
}

// resize files a configuration under its number of runs.
func (s *shelf) resize(c *shelved, before int) {
	if before > 0 {
		s.sizes[before].Remove(c.at)
	}
	n := c.runs.Len()
	if n == 0 {
		return
	}
	for len(s.sizes) <= n {
		s.sizes = append(s.sizes, nil)
	}
	if s.sizes[n] == nil {
		s.sizes[n] = list.New()
	}
	c.at = s.sizes[n].PushBack(c)
	s.largest = max(s.largest, n)
}
