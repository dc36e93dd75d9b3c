package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"courier/schemas"
)

// informedDraws is the number of simulated futures per candidate. The standard error of a
// probability of 0.95 is then 0.02.
const informedDraws = 100

// informed knows the laws, the noise of running jobs, the distribution of the noise of new jobs,
// and the rate of arrivals. It promises the most accurate candidate that meets the SLO in a share
// of the simulated futures of at least the confidence. No rule that keeps each promise with that
// probability can do much better.
type informed struct {
	stateless
	p    *play
	seed uint64
	rate float64        // estimated number of starts per second
	draw func() arrival // draws a start
}

func (i *informed) know(p *play) { i.p = p }

// Submit implements Rule.
func (i *informed) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	r := randomFor(i.seed, streamInformed, q.JobID)
	i.rate, i.draw = i.arrivals(r)
	all := candidates(&q)
	accuracy := func(c jobCandidate) float64 { return i.p.job.accuracy(c, uint32(q.Epochs)) }
	slices.SortStableFunc(all, func(a, b jobCandidate) int {
		return cmp.Or(cmp.Compare(accuracy(b), accuracy(a)), cmp.Compare(a.cpus, b.cpus))
	})
	decision, best, most := schemas.BestEffort, all[0], -1.0
	for _, c := range all {
		p := i.probability(c, on.Name, r)
		if p > most {
			best, most = c, p
		}
		if p >= q.Confidence {
			decision, best, most = schemas.MeetsSLO, c, p
			break
		}
	}
	a := answer(&q, at, decision, on.Name, best)
	a.Chosen.Probability = &most
	return a, nil
}

// probability returns the ratio of futures in which the submitted job meets its SLO.
func (i *informed) probability(c jobCandidate, on string, r *rand.Rand) float64 {
	kept := 0
	for range informedDraws {
		j := *i.p.job
		j.noise = i.p.World.Noise.runNoise(r.Uint64(), "", j.Request.Epochs)
		if i.future(&j, c, on, r) {
			kept++
		}
	}
	return float64(kept) / informedDraws
}

// future simulates one future of all nodes and reports whether the job meets its SLO.
func (i *informed) future(j *Submission, c jobCandidate, on string, r *rand.Rand) bool {
	nodes := make([]node, len(i.p.nodes))
	for k := range nodes {
		if nodes[k] = i.p.nodes[k].copied(); nodes[k].Name == on {
			nodes[k].start(j, c, uint32(j.Request.Epochs), false)
		}
	}
	begin := i.p.job.At
	limit := begin + j.Request.SLO.Seconds()
	next := begin + r.ExpFloat64()/i.rate
	for {
		first, at := earliest(nodes)
		if min(at, next) > limit {
			return false
		}
		if next < at {
			for k := range nodes {
				nodes[k].pass(next)
			}
			a := i.draw()
			a.job.noise = i.p.World.Noise.runNoise(r.Uint64(), "", a.job.Request.Epochs)
			leastLoaded(nodes, &a.job.Request).start(a.job, a.choice, a.epochs, false)
			next += r.ExpFloat64() / i.rate
			continue
		}
		if ended, what := first.step(); what == jobEnded && ended.job == j {
			return first.now <= limit
		}
	}
}

// arrivals returns the number of starts per second and a function that draws one: one of the past
// starts, or, if there are few, a job of the world.
func (i *informed) arrivals(r *rand.Rand) (rate float64, draw func() arrival) {
	const enough = 20
	var past []arrival
	for _, n := range i.p.nodes {
		past = append(past, i.p.arrivals[n.Name]...)
	}
	if len(past) < enough {
		return 1 / i.p.World.gapSeconds(), func() arrival {
			j := i.p.World.job("", 0, schemas.DefaultConfidence, r, r.Uint64())
			all := candidates(&j.Request)
			return arrival{job: &j, choice: all[r.IntN(len(all))], epochs: uint32(j.Request.Epochs)}
		}
	}
	return float64(len(past)) / math.Max(i.p.job.At, 1), func() arrival {
		a := past[r.IntN(len(past))]
		a.job = new(*a.job)
		return a
	}
}
