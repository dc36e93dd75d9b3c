package simulate

import "math"

// Best is the most accurate candidate that would have met the SLO, in truth; of
// equals the fastest.
type Best struct {
	Feasible        bool // there is one
	BatchSize, CPUs uint32
	Accuracy        float64 // the true one, 0 to 1
}

// bestOf tries the candidates of a job: seconds says how long each would take,
// from submission to its end.
func bestOf(j *Job, seconds func(c candidate) float64) Best {
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
		b, quickest = Best{true, c.batch, c.cpus, accuracy}, s
	}
	return b
}

// accuracy is the true one of a choice.
func (j *Job) accuracy(c candidate, epochs uint32) float64 {
	return j.family.Accuracy.after(j.family.TrainingSamples, c.batch, epochs)
}

// best is that of a job which starts now, if nobody comes later.
func (n *node) best(j *Job) Best {
	return bestOf(j, func(c candidate) float64 { return n.try(j, c, nil) })
}

// arrival is a job that starts on a node at some time.
type arrival struct {
	number int // of the submission, from 0
	at     float64
	job    *Job
	choice candidate
	epochs uint32
}

// try runs a copy of the node ahead, with the job on it from now on and others
// later, and returns the seconds until the job ends.
func (n *node) try(j *Job, c candidate, later []arrival) float64 {
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
