package decide

import (
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// unaffected holds the forecasts of the co-located jobs without the job of the question, and the
// probabilities of their SLOs.
type unaffected struct {
	jobs          []simulatedJob
	probabilities []float64 // NaN if there is no SLO, or if it is unknown
}

// withoutJob forecasts the co-located jobs without the job of the question, with the CPUs that
// they would lend to it.
func (p *problem) withoutJob() unaffected {
	if p.before != nil {
		q := *p.Question
		q.Others, q.before = p.before, nil
		return newProblem(&q, p.r).withoutJob()
	}
	u := unaffected{jobs: p.sim.run(nil).others}
	for i := range u.jobs {
		u.probabilities = append(u.probabilities, p.deadlineProbability(i, &u.jobs[i]))
	}
	return u
}

// effects predicts the effects of the chosen alternative on the co-located jobs. If the end of the
// job is unknown, it outlasts them.
func (p *problem) effects(without unaffected, chosen *schemas.Alternative) []schemas.Effect {
	if len(p.Others) == 0 {
		return nil
	}
	with := p.forecast(variantOf(chosen)).others
	var all []schemas.Effect
	for i := range with {
		m, before, after := &p.Others[i], without.jobs[i].end, with[i].end
		if math.IsInf(before, 1) || math.IsInf(after, 1) {
			continue
		}
		e := schemas.Effect{
			JobID:         m.JobID,
			BeforeSeconds: before,
			AfterSeconds:  after,
			Confidence:    m.Confidence,
			BreaksSLO:     p.breaks(without, i, &with[i]),
		}
		if probability := without.probabilities[i]; !math.IsNaN(probability) {
			e.BeforeProbability, e.AfterProbability = &probability, new(p.deadlineProbability(i, &with[i]))
		}
		all = append(all, e)
	}
	return all
}

// breaks reports whether the promise of a co-located job is broken if the job runs as forecast. A
// promise breaks if its probability falls below its threshold, or falls further while the SLO can
// still be met. The promise of a job that will probably miss its SLO cannot be broken.
func (p *problem) breaks(without unaffected, i int, with *simulatedJob) bool {
	threshold, before := p.Others[i].Confidence, without.probabilities[i]
	after := p.deadlineProbability(i, with)
	switch {
	case before >= threshold:
		return !(after >= threshold)
	case before >= LikelyMissed:
		return !(after >= before-maxFurtherDrop)
	}
	return false
}

// breaksAny reports whether the promise of any co-located job is broken by a forecast.
func (p *problem) breaksAny(without unaffected, f *forecast) bool {
	for i := range f.others {
		if p.breaks(without, i, &f.others[i]) {
			return true
		}
	}
	return false
}

// LikelyMissed is the probability of the SLO below which a job is treated as lost.
const LikelyMissed = 0.5

// maxFurtherDrop bounds the drop in probability of a promise that is already at risk.
const maxFurtherDrop = 0.01

// deadlineProbability returns the probability that a co-located job meets its deadline, NaN if it has none
// or the probability is unknown.
func (p *problem) deadlineProbability(i int, j *simulatedJob) float64 {
	m := &p.Others[i]
	if m.Left == 0 || math.IsInf(j.end, 1) {
		return math.NaN()
	}
	o := j.outlook(max(j.end, tinySeconds), &j.leastCertain, evidence.Distribution{})
	o.isExtrapolated = false // its probability is known, though it would not be promised
	if probability, ok := o.inTime(m.Left.Seconds()); ok {
		return probability
	}
	return math.NaN()
}

// brokenCount returns the number of running jobs whose promise the advice would break.
func brokenCount(a *schemas.Advice) (n int) {
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			n++
		}
	}
	return n
}
