package advisor

import (
	"math"

	"courier/schemas"
)

// means holds what is promised where the confidence is the mean of all promises
// that ask for it. Most jobs have an SLO far from what they need, and keep it with
// more than the confidence: what they have too much lets others be promised with
// less. It is a fold over the log.
type means map[float64]*mean // by confidence

// mean is the state for one confidence.
type mean struct {
	threshold float64 // least probability that is promised now
	over      total   // by how much probabilities were more than what came of them
}

const (
	meanGamma  = 0.2  // how fast a threshold follows
	meanLeast  = 0.5  // nothing is promised that is rather broken than kept
	meanWindow = 1000 // promises by which probabilities are judged
	meanShrink = 100  // probabilities count as true like so many of them
	mostMeans  = 64   // confidences that are remembered; with any other each promise has it
)

// threshold is the least probability that a request may be promised; 0: its
// confidence.
func (m means) threshold(q *schemas.JobRequest) float64 {
	if q.Promise != schemas.PromiseMean || q.SLO == 0 {
		return 0
	}
	if s, known := m[q.Confidence]; known {
		return math.Round(s.threshold*1e4) / 1e4 // the same in whichever order two advisors counted
	}
	return q.Confidence
}

// promise moves the threshold by a promise that a job was given: by how much less
// than the confidence is what it is expected to come to, as the level of adaptive
// conformal inference (Gibbs, Candes 2021) moves by what came.
func (m means) promise(j *Job) {
	p, ok := meant(j)
	if !ok {
		return
	}
	c := j.Promise.Confidence
	s := m[c]
	if s == nil {
		if len(m) >= mostMeans {
			return
		}
		s = &mean{threshold: c}
		m[c] = s
	}
	expected := p - s.over.sum/(s.over.n+meanShrink)
	s.threshold = min(max(s.threshold+meanGamma*(c-expected), min(meanLeast, c)), c)
}

// end learns from what came of a promise, so that the share that is kept becomes
// the confidence also where probabilities say too much.
func (m means) end(j *Job) {
	p, ok := meant(j)
	o, told := j.Outcome()
	if !ok || !told || !o.AsAdvised {
		return
	}
	if o.Kept {
		p--
	}
	if s := m[j.Promise.Confidence]; s != nil {
		s.over = s.over.add(p, meanWindow)
	}
}

// meant returns the probability of a promise whose confidence is a mean.
func meant(j *Job) (p float64, ok bool) {
	if j == nil || j.Promise == nil || j.Promise.Threshold == 0 ||
		j.Promise.Decision != schemas.MeetsSLO || j.Promise.Chosen.Probability == nil {
		return 0, false
	}
	return *j.Promise.Chosen.Probability, true
}
