package simulate

import (
	"time"

	"courier/schemas"
)

// PaperRule chooses as in the paper (Courier, ICPE 2021, section 4.4). Of the candidates whose
// point prediction at the current load is within the SLO it promises the most accurate; if there
// is none it refuses. It has no bound, ignores future load and start-up time.
type PaperRule struct {
	*Learner
	View
}

// NewPaperRule returns the rule of the paper with the regressors of a learner.
func NewPaperRule(l *Learner) *PaperRule { return &PaperRule{Learner: l} }

// Use replaces the regressors.
func (p *PaperRule) Use(epochTime, accuracy *PointRegressor) {
	p.epochTime, p.accuracy = epochTime, accuracy
}

// Apply implements Rule.
func (p *PaperRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	p.add(e, sequence)
	p.View.Apply(e, sequence, at)
}

// Submit implements Rule.
func (p *PaperRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	if _, err := p.learn(); err != nil {
		return nil, err
	}
	return p.Decide(q, at)
}

// Decide answers a request with the current regressors, without a fit.
func (p *PaperRule) Decide(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	on, err := p.Place(&q)
	if err != nil {
		return nil, err
	}
	all, err := p.predictCandidates(&q, on)
	if err != nil {
		return nil, err
	}
	decision, best := choosePoint(all, q.SLO.Seconds())
	return Answer(&q, at, decision, on, p.Load(on, best.cpus), best.batch, best.cpus), nil
}

// predictedCandidate is a candidate with its point predictions.
type predictedCandidate struct {
	batch, cpus       uint32
	seconds, accuracy float64
}

// predictCandidates predicts every candidate on a node.
func (p *PaperRule) predictCandidates(
	q *schemas.JobRequest, on WorldNode,
) ([]predictedCandidate, error) {
	level := schemas.ModelLevel(q.Model, q.Dataset)
	node := schemas.Hardware{Cores: on.Cores}
	var all []predictedCandidate
	for _, cpus := range q.CPUs {
		load := p.Load(on, uint32(cpus))
		for _, batch := range q.BatchSizes {
			f := schemas.Features{
				BatchSize:  uint32(batch),
				CPUs:       uint32(cpus),
				Load:       load,
				EpochsDone: uint32(q.Epochs),
			}
			epoch, err := p.epochTime.Predict(level, node, f)
			if err != nil {
				return nil, err
			}
			accuracy, err := p.accuracy.Predict(level, node, f)
			if err != nil {
				return nil, err
			}
			all = append(all, predictedCandidate{
				batch:    f.BatchSize,
				cpus:     f.CPUs,
				seconds:  float64(q.Epochs) * epoch,
				accuracy: accuracy,
			})
		}
	}
	return all, nil
}

// choosePoint returns the most accurate candidate within the SLO, the fastest of equally accurate
// ones. If none is within the SLO it returns the fastest.
func choosePoint(
	all []predictedCandidate, sloSeconds float64,
) (schemas.Decision, predictedCandidate) {
	decision, best := schemas.BestEffort, all[0]
	for _, c := range all {
		within := c.seconds <= sloSeconds
		better := c.accuracy > best.accuracy ||
			c.accuracy == best.accuracy && c.seconds < best.seconds
		switch {
		case within && decision == schemas.BestEffort:
			decision, best = schemas.MeetsSLO, c
		case within && better:
			best = c
		case !within && decision == schemas.BestEffort && c.seconds < best.seconds:
			best = c
		}
	}
	return decision, best
}
