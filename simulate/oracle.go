package simulate

import (
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// oracle knows the laws, the noise, and who comes later.
type oracle struct{ world *play }

// NewOracle returns the rule that knows everything: it accepts if and only if
// some candidate meets the SLO whoever comes later, and takes, of those that
// break the fewest promises given before, the most accurate. Of the jobs that
// come later it assumes that each takes its most accurate candidate that meets
// its own SLO if nobody comes after it, so that it may err by a hair.
func NewOracle() Rule { return &oracle{} }

func (o *oracle) know(p *play) { o.world = p }

// Apply implements Rule: it looks at the world itself.
func (o *oracle) Apply(schemas.Event, uint64, time.Time) {}

// Submit implements Rule.
func (o *oracle) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	p := o.world
	n, j := leastLoaded(p.nodes, &q), p.job
	best, fewest := Best{}, math.MaxInt
	for _, c := range candidates(&q) {
		accuracy := j.accuracy(c, uint32(q.Epochs))
		if fewest == 0 && accuracy <= best.Accuracy {
			continue
		}
		seconds, broken := p.foresee(j, c, n)
		if seconds <= q.SLO.Seconds() && (broken < fewest || broken == fewest &&
			accuracy > best.Accuracy) {
			best, fewest = Best{true, c.batch, c.cpus, accuracy}, broken
		}
	}
	decision := schemas.MeetsSLO
	if !best.Feasible {
		c := candidates(&q)[0]
		decision, best = schemas.BestEffort, Best{BatchSize: c.batch, CPUs: c.cpus}
	}
	load := schemas.Load{
		ConcurrentJobs:  float64(len(n.jobs) + 1),
		Processes:       float64(n.processes + int(best.CPUs)),
		StableTimeRatio: 1,
	}
	load.ProcessesPerCore = load.Processes / float64(n.Cores)
	return Answer(&q, at, decision, *n.Node, load, best.BatchSize, best.CPUs), nil
}

// leastLoaded is the node that View.Place finds in the events.
func leastLoaded(nodes []node, q *schemas.JobRequest) *node {
	var best *node
	for i := range nodes {
		n := &nodes[i]
		if int(n.Cores) < slices.Min(q.CPUs) {
			continue
		}
		if best == nil || n.perCore() < best.perCore() || n.perCore() == best.perCore() &&
			n.Name < best.Name {
			best = n
		}
	}
	return best
}

func (n *node) perCore() float64 { return float64(n.processes) / float64(n.Cores) }

// foresee runs a copy of the world ahead, with the job on the node, until it and
// every job with a promise that runs now have ended. It returns the seconds that
// the job takes, and how many of the promises are broken.
func (p *play) foresee(j *Job, c candidate, on *node) (seconds float64, broken int) {
	nodes, waiting := make([]node, len(p.nodes)), 1
	for i := range nodes {
		nodes[i] = p.nodes[i].copied()
		for _, r := range nodes[i].jobs {
			if r.promised {
				waiting++
			}
		}
		if &p.nodes[i] == on {
			nodes[i].start(j, c, uint32(j.Request.Epochs), false)
		}
	}
	later := p.Jobs[p.submitted:]
	for waiting > 0 {
		first, at := earliest(nodes)
		if len(later) > 0 && later[0].At < at {
			admit(nodes, &later[0])
			later = later[1:]
			continue
		}
		r, what := first.step()
		switch {
		case what != jobEnded:
		case r.job == j:
			seconds = first.now - j.At
			waiting--
		case r.promised:
			waiting--
			if first.now-r.job.At > r.job.Request.SLO.Seconds() {
				broken++
			}
		}
	}
	return seconds, broken
}

// admit starts a job that came, unless it cannot meet its SLO.
func admit(nodes []node, j *Job) {
	for i := range nodes {
		nodes[i].pass(j.At)
	}
	n := leastLoaded(nodes, &j.Request)
	if b := n.best(j); b.Feasible {
		n.start(j, candidate{b.BatchSize, b.CPUs}, uint32(j.Request.Epochs), false)
	}
}
