package advisor

import (
	"math"
	"slices"

	"courier/schemas"
)

// Configuration is what an alternative fixes and an epoch teaches about.
type Configuration struct{ BatchSize, CPUs uint32 }

// tried is what was run of each model. The lists are never changed in place, so
// that questions may keep them.
type tried map[string]experience

// experience is what the log has of a model.
type experience struct {
	configurations []Configuration // with an epoch
	seen           []Sighting      // the last epochs
}

// keptTried bounds the list of a model; more would not be learnt any sooner.
const keptTried = 256

func (t tried) add(s *schemas.Setting) {
	c, x := Configuration{s.BatchSize, s.CPUs}, t[s.Model]
	if len(x.configurations) < keptTried && !slices.Contains(x.configurations, c) {
		x.configurations = append(slices.Clip(x.configurations), c)
		t[s.Model] = x
	}
}

// see notes an epoch of a model.
func (t tried) see(s *schemas.Setting, l lap) {
	x := t[s.Model]
	x.seen = append(slices.Clone(x.seen[max(0, len(x.seen)+1-keptSightings):]), Sighting{Configuration{l.batch, s.CPUs}, l.seconds, l.load.Load, l.load.on})
	t[s.Model] = x
}

// distance of two configurations, in doublings.
func (c Configuration) distance(to Configuration) float64 {
	return math.Hypot(math.Log2(float64(c.BatchSize)/float64(to.BatchSize)), math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// nearest is the distance to the closest of some configurations.
func (c Configuration) nearest(to []Configuration) float64 {
	least := math.Inf(1)
	for _, t := range to {
		least = min(least, c.distance(t))
	}
	return least
}

// exploreFirst takes the alternative that teaches most: the one farthest from
// what was tried, so that each job widens what is known (maximin design, Johnson
// et al. 1990). Where nothing was tried, or nothing is left to try, it is the
// one with the shortest epoch: by the paper that of the largest batch with the
// most CPUs. What will hardly keep the SLO comes last. A job that runs goes on as
// it does: it teaches already.
func exploreFirst(q *Question, a *schemas.Advice) int {
	a.Decision = schemas.Exploring
	for i := range a.Alternatives {
		a.Alternatives[i].Reason = reasonUnknown
	}
	best := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool { return q.runs(&alt) })
	if best < 0 {
		best = farthest(a.Alternatives, q.Tried, func(alt *schemas.Alternative) bool { return probability(alt) >= hopeless })
	}
	if best < 0 {
		best = farthest(a.Alternatives, q.Tried, func(*schemas.Alternative) bool { return true })
	}
	a.Alternatives[best].Reason = reasonLearn
	return best
}

// farthest returns the alternative farthest from what was tried among those that
// may be taken; of several, the one with the shortest epoch. -1: none may.
func farthest(all []schemas.Alternative, tried []Configuration, may func(*schemas.Alternative) bool) int {
	best, most := -1, -1.0
	for i := range all {
		alt := &all[i]
		if !may(alt) {
			continue
		}
		d := Configuration{alt.BatchSize, alt.CPUs}.nearest(tried)
		if best >= 0 && d == most {
			b := &all[best]
			if alt.BatchSize > b.BatchSize || alt.BatchSize == b.BatchSize && alt.CPUs > b.CPUs {
				best = i
			}
		} else if d > most {
			best, most = i, d
		}
	}
	return best
}

// Of the epochs that an answer proposes to learn a model by.
const (
	mostProbes = 3
	probeShare = 0.25 // of what the SLO leaves: they may take no more
)

// probes plans one to three epochs that teach most: the chosen configuration
// first, then each time the farthest from all before it, while their times as the
// relatives have them leave room for the job. None are left to try: no plan.
func (d *decision) probes(a *schemas.Advice) (plan []schemas.ProbeEpoch) {
	tried := slices.Clone(d.q.Tried)
	spent := 0.0
	next := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool {
		return alt.BatchSize == a.Chosen.BatchSize && alt.CPUs == a.Chosen.CPUs
	})
	for len(plan) < mostProbes && next >= 0 {
		alt := &a.Alternatives[next]
		c := Configuration{alt.BatchSize, alt.CPUs}
		p := schemas.ProbeEpoch{BatchSize: alt.BatchSize, CPUs: alt.CPUs, Epochs: 1}
		if alt.PredictedSeconds != nil {
			p.PredictedSeconds = d.figure(seconds(alt) / float64(max(1, alt.Epochs)))
			spent += *p.PredictedSeconds
		}
		if c.nearest(tried) == 0 || len(plan) > 0 && d.q.Request.SLO > 0 && spent > probeShare*d.q.left() {
			break
		}
		plan, tried = append(plan, p), append(tried, c)
		next = farthest(a.Alternatives, tried, func(*schemas.Alternative) bool { return true })
	}
	return plan
}
