package main

import (
	"time"

	"courier/schemas"
	"courier/simulate"
)

// paperRule chooses as the paper does (Courier, ICPE 2021, section 4.4): of the
// candidates whose point prediction, at the load of this moment, is within the
// SLO it takes the most accurate, and promises it; where none is within, it
// refuses. It knows no bound, no future and no start-up.
type paperRule struct {
	*learner
	simulate.View
}

func newPaperRule(l *learner) *paperRule { return &paperRule{learner: l} }

// Apply implements simulate.Rule.
func (p *paperRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	p.add(e, sequence)
	p.View.Apply(e, sequence, at)
}

// pointed is a candidate with its point predictions.
type pointed struct {
	batch, cpus       uint32
	seconds, accuracy float64
}

// Submit implements simulate.Rule.
func (p *paperRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	if _, err := p.learn(); err != nil {
		return nil, err
	}
	on, err := p.Place(&q)
	if err != nil {
		return nil, err
	}
	all, err := p.points(&q, on)
	if err != nil {
		return nil, err
	}
	decision, best := choosePoint(all, q.SLO.Seconds())
	return simulate.Answer(&q, at, decision, on, p.Load(on, best.cpus), best.batch, best.cpus), nil
}

// points predicts every candidate on a node.
func (p *paperRule) points(q *schemas.JobRequest, on simulate.Node) ([]pointed, error) {
	var all []pointed
	for _, cpus := range q.CPUs {
		load, machine := p.Load(on, uint32(cpus)), schemas.Hardware{Cores: on.Cores}
		for _, batch := range q.BatchSizes {
			f := schemas.Features{BatchSize: uint32(batch), CPUs: uint32(cpus), Load: load, EpochsDone: uint32(q.Epochs)}
			epoch, err := p.epochTime.point(levelOf(q), machine, f)
			if err != nil {
				return nil, err
			}
			accuracy, err := p.accuracy.point(levelOf(q), machine, f)
			if err != nil {
				return nil, err
			}
			all = append(all, pointed{f.BatchSize, f.CPUs, float64(q.Epochs) * epoch, accuracy})
		}
	}
	return all, nil
}

// choosePoint returns the most accurate within the SLO, of equals the fastest;
// if none is within, the fastest of all.
func choosePoint(all []pointed, sloSeconds float64) (schemas.Decision, pointed) {
	decision, best := schemas.BestEffort, all[0]
	for _, c := range all {
		within := c.seconds <= sloSeconds
		switch {
		case within && decision == schemas.BestEffort:
			decision, best = schemas.MeetsSLO, c
		case within && (c.accuracy > best.accuracy || c.accuracy == best.accuracy && c.seconds < best.seconds):
			best = c
		case !within && decision == schemas.BestEffort && c.seconds < best.seconds:
			best = c
		}
	}
	return decision, best
}
