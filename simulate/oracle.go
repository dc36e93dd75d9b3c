package simulate

import (
	"math"
	"time"

	"courier/schemas"
)

// oracle knows the laws, the noise and all later jobs. It accepts a job if a candidate meets the SLO
// given all later jobs. Of the candidates that break the fewest earlier promises it chooses the
// most accurate one. It assumes that each later job runs with its most accurate candidate that
// would meet its SLO without further arrivals; so it is not exactly optimal.
type oracle struct {
	stateless
	world *play
}

func (o *oracle) know(p *play) { o.world = p }

// Submit implements Rule.
func (o *oracle) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	p := o.world
	n, j := p.node(on.Name), p.job
	best, fewest := Best{}, math.MaxInt
	for _, c := range candidates(&q) {
		accuracy := j.accuracy(c, uint32(q.Epochs))
		if fewest == 0 && accuracy <= best.Accuracy {
			continue
		}
		seconds, broken := p.foresee(j, c, n)
		if seconds <= q.SLO.Seconds() && (broken < fewest || broken == fewest &&
			accuracy > best.Accuracy) {
			best, fewest = Best{true, c, accuracy}, broken
		}
	}
	if !best.Feasible {
		return answer(&q, at, schemas.BestEffort, n.Name, candidates(&q)[0]), nil
	}
	return answer(&q, at, schemas.MeetsSLO, n.Name, best.choice), nil
}

// foresee simulates a copy of the world with the job on the node, until the job and all running
// jobs with a promise have ended. It returns the time of the job in seconds and the number of
// broken promises.
func (p *play) foresee(j *Submission, c jobCandidate, on *node) (seconds float64, broken int) {
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

// admit starts an arriving job, unless it cannot meet its SLO.
func admit(nodes []node, j *Submission) {
	for i := range nodes {
		nodes[i].pass(j.At)
	}
	n := leastLoaded(nodes, &j.Request)
	if b := n.best(j); b.Feasible {
		n.start(j, b.choice, uint32(j.Request.Epochs), false)
	}
}

// Best is the most accurate candidate that would have met the SLO. Among equally accurate ones it
// is the fastest.
type Best struct {
	Feasible bool // there is such a candidate
	choice   jobCandidate
	Accuracy float64 // true accuracy, 0 to 1
}

// bestOf returns the best candidate of a job. seconds returns the time of a candidate from
// submission to end.
func bestOf(j *Submission, seconds func(c jobCandidate) float64) Best {
	var b Best
	quickest := 0.0
	for _, c := range candidates(&j.Request) {
		accuracy := j.accuracy(c, uint32(j.Request.Epochs))
		if b.Feasible && accuracy < b.Accuracy {
			continue
		}
		s := seconds(c)
		if s > j.Request.SLO.Seconds() || b.Feasible && accuracy == b.Accuracy && s >= quickest {
			continue
		}
		b, quickest = Best{true, c, accuracy}, s
	}
	return b
}

func (j *Submission) accuracy(c jobCandidate, epochs uint32) float64 {
	return j.family.Accuracy.after(j.family.TrainingSamples, c.batch, epochs)
}

// best returns the best candidate of a job that starts now, without later jobs.
func (n *node) best(j *Submission) Best {
	return bestOf(j, func(c jobCandidate) float64 { return n.try(j, c, nil) })
}

// arrival is the start of a job on a node.
type arrival struct {
	number int // number of the submission, from 0
	at     float64
	job    *Submission
	choice jobCandidate
	epochs uint32
}

// try simulates a copy of the node with the job from now on and others later. It returns the
// seconds until the job ends.
func (n *node) try(j *Submission, c jobCandidate, later []arrival) float64 {
	ahead := n.copied()
	ahead.start(j, c, uint32(j.Request.Epochs), false)
	for {
		at, _ := ahead.next()
		if len(later) > 0 && later[0].at < at {
			ahead.advance(later[0].at)
			ahead.start(later[0].job, later[0].choice, later[0].epochs, false)
			later = later[1:]
			continue
		}
		if r, what := ahead.step(); what == jobEnded && r.job == j {
			return ahead.now - n.now
		}
	}
}
