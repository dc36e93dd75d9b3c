package simulate

import "math"

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
		if math.IsInf(at, 1) {
			return at
		}
		if r, what := ahead.step(); what == jobEnded && r.job == j {
			return ahead.now - n.now
		}
	}
}
