package trainer

import (
	"container/list"
)

// rareRuns is the number of runs up to which a configuration is not evicted in favour of others. If
// all are rare, the configuration with the oldest last run is evicted.
const rareRuns = 8

// archive holds the ended runs of a Past by configuration and drops runs beyond its limits. Beyond
// the limit of one configuration it drops its oldest run; beyond the limit of all runs it drops the
// oldest run of the configuration with the most runs. Therefore a rare configuration outlives many
// runs of a frequent one, and models that are trained once do not displace others.
type archive struct {
	limits         *Limits
	configurations map[configuration]*archived
	sizes          []*list.List // of *archived by their number of runs, the longest at that size first
	largest        int          // index of the last list that may be non-empty
	used           *list.List   // of *archived, the least recently run first
	runs, epochs   int
}

func newArchive(l *Limits) *archive {
	return &archive{limits: l, configurations: map[configuration]*archived{}, used: list.New()}
}

// add archives an ended run, and returns the runs that are dropped for it.
func (s *archive) add(r *run, of configuration) (dropped []*run) {
	c := s.configurations[of]
	if c == nil {
		c = &archived{of: of, runs: list.New()}
		s.configurations[of] = c
		c.used = s.used.PushBack(c)
	}
	s.used.MoveToBack(c.used)
	r.archived, r.inArchive = c, c.runs.PushBack(r)
	s.runs, s.epochs = s.runs+1, s.epochs+len(r.epochs)
	s.resize(c, c.runs.Len()-1)
	for c.runs.Len() > s.limits.SettingRuns {
		dropped = append(dropped, s.dropOldest(c))
	}
	for s.runs > s.limits.Runs || s.epochs > s.limits.Epochs && s.runs > 1 {
		dropped = append(dropped, s.dropOldest(s.mostExpendable()))
	}
	return dropped
}

// remove removes a run from the archive.
func (s *archive) remove(r *run) {
	c := r.archived
	before := c.runs.Len()
	c.runs.Remove(r.inArchive)
	r.archived, r.inArchive = nil, nil
	s.runs, s.epochs = s.runs-1, s.epochs-len(r.epochs)
	s.resize(c, before)
	if c.runs.Len() == 0 {
		delete(s.configurations, c.of)
		s.used.Remove(c.used)
	}
}

func (s *archive) dropOldest(c *archived) *run {
	r := c.runs.Front().Value.(*run)
	s.remove(r)
	return r
}

// mostExpendable returns the configuration that loses a run: the one with the most runs, and among
// equals the one that reached this number first. If all are rare, it is the least recently run one.
func (s *archive) mostExpendable() *archived {
	for s.sizes[s.largest] == nil || s.sizes[s.largest].Len() == 0 {
		s.largest--
	}
	if s.largest <= rareRuns {
		return s.used.Front().Value.(*archived)
	}
	return s.sizes[s.largest].Front().Value.(*archived)
}

// resize moves a configuration to the list of its number of runs.
func (s *archive) resize(c *archived, before int) {
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
