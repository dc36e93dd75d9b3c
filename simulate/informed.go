package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"courier/schemas"
)

// RuleInformed knows all that can be known before it happens.
const RuleInformed = "informed"

// informedDraws is how many futures it looks at for each candidate: the standard
// error of a probability of 0.95 is 0.02 then.
const informedDraws = 100

// informed knows the laws, the noise of the jobs that run, the distribution of
// that of the next, and what comes and starts on average: all but what chance has
// yet to decide. It promises the most accurate candidate that keeps its SLO in as
// many of its futures as the job's confidence asks for. No rule that keeps each
// promise with that probability can do much better.
type informed struct {
	p    *play
	seed uint64
	rate float64        // starts in a second, as far as is known
	draw func() arrival // one of them
}

// NewInformed returns the rule.
func NewInformed(seed uint64) Rule { return &informed{seed: seed} }

func (i *informed) know(p *play) { i.p = p }

// Apply implements Rule; it sees the world itself.
func (i *informed) Apply(schemas.Event, uint64, time.Time) {}

// Submit implements Rule.
func (i *informed) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	on, r := leastLoaded(i.p.nodes, &q), chances(i.seed, streamInformed, q.JobID)
	i.rate, i.draw = i.arrivals(r)
	all := candidates(&q)
	slices.SortStableFunc(all, func(a, b candidate) int {
		x, y := i.p.job.accuracy(a, uint32(q.Epochs)), i.p.job.accuracy(b, uint32(q.Epochs))
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return int(a.cpus) - int(b.cpus)
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
	v := View{nodes: []Node{*on.Node}}
	a := Answer(&q, at, decision, *on.Node, v.Load(*on.Node, best.cpus), best.batch, best.cpus)
	a.Chosen.Probability = &most
	return a, nil
}

// probability is the share of futures in which the job in hand keeps its SLO.
func (i *informed) probability(c candidate, on string, r *rand.Rand) float64 {
	kept := 0
	for range informedDraws {
		j := *i.p.job
		j.luck = i.p.World.Noise.luck(r.Uint64(), "", j.Request.Epochs)
		if i.future(&j, c, on, r) {
			kept++
		}
	}
	return float64(kept) / informedDraws
}

// future plays one future of all nodes and reports whether the job keeps its SLO.
func (i *informed) future(j *Job, c candidate, on string, r *rand.Rand) bool {
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
			a.job.luck = i.p.World.Noise.luck(r.Uint64(), "", a.job.Request.Epochs)
			leastLoaded(nodes, &a.job.Request).start(a.job, a.choice, a.epochs, false)
			next += r.ExpFloat64() / i.rate
			continue
		}
		if ended, what := first.step(); what == jobEnded && ended.job == j {
			return first.now <= limit
		}
	}
}

// arrivals is how many jobs start in a second, and which: those that started so
// far, drawn anew; before enough of them, whatever the world brings.
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
		j := *a.job
		a.job = &j
		return a
	}
}
