package advisor

import (
	"math"

	"courier/schemas"
)

// effects predicts what the job, run as chosen, does to those that run beside it.
func (d *decision) effects(chosen *schemas.Alternative) []schemas.Effect {
	d.f.run(nil)
	before := make([]ahead, len(d.f.jobs))
	copy(before, d.f.jobs)
	d.f.run(d.ahead(chosen, d.loadOf(chosen.CPUs)))
	var all []schemas.Effect
	for i := range before {
		m, after := &d.q.Others[i], &d.f.jobs[i]
		if math.IsInf(before[i].end, 1) || math.IsInf(after.end, 1) {
			continue
		}
		e := schemas.Effect{JobID: m.JobID, BeforeSeconds: before[i].end, AfterSeconds: after.end, Confidence: m.Confidence}
		if m.Left != 0 {
			e.BeforeProbability, e.AfterProbability = d.chance(m, &before[i]), d.chance(m, after)
			e.BreaksSLO = e.BeforeProbability != nil && e.AfterProbability != nil && *e.BeforeProbability >= m.Confidence && *e.AfterProbability < m.Confidence
		}
		all = append(all, e)
	}
	return all
}

// chance is how likely a running job meets its deadline, nil if nobody knows.
func (d *decision) chance(m *Member, fate *ahead) *float64 {
	o := outlook{seconds: max(fate.end, tinySeconds), table: d.r.EpochTime.residuals(fate.model), narrow: fate.narrow, record: d.q.Record}
	p, ok := o.probability(m.Left.Seconds(), m.Confidence)
	if !ok {
		return nil
	}
	return &p
}
