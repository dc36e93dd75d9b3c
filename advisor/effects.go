package advisor

import (
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// without runs the cluster forward without the job in question, once, and keeps
// what becomes of the others.
func (d *decision) without() {
	d.f.run(nil)
	d.before, d.chances = append(d.before[:0], d.f.jobs...), d.chances[:0]
	for i := range d.before {
		d.chances = append(d.chances, d.chance(i, &d.before[i]))
	}
}

// effects predicts what the job, run as chosen, does to those that run beside
// it. One whose own time nobody knows is taken to outlast them all.
func (d *decision) effects(chosen *schemas.Alternative) []schemas.Effect {
	d.without()
	d.f.run(d.ahead(chosen, d.loadOf(chosen.CPUs)))
	var all []schemas.Effect
	for i := range d.before {
		m, before, after := &d.q.Others[i], &d.before[i], &d.f.jobs[i]
		if math.IsInf(before.end, 1) || math.IsInf(after.end, 1) {
			continue
		}
		e := schemas.Effect{
			JobID:         m.JobID,
			BeforeSeconds: before.end,
			AfterSeconds:  after.end,
			Confidence:    m.Confidence,
			BreaksSLO:     d.breaks(i),
		}
		if was := d.chances[i]; !math.IsNaN(was) {
			is := d.chance(i, after)
			e.BeforeProbability, e.AfterProbability = &was, &is
		}
		all = append(all, e)
	}
	return all
}

// breaks reports whether the last forecast breaks the promise to a running job:
// its probability falls under its threshold, or falls further while it can still
// be kept. What is lost already cannot be broken. Without is called before.
func (d *decision) breaks(i int) bool {
	c, was := d.q.Others[i].least(), d.chances[i]
	is := d.chance(i, &d.f.jobs[i])
	switch {
	case was >= c:
		return !(is >= c)
	case was >= hopeless:
		return !(is >= was-tolerated)
	}
	return false
}

// tolerated is by how much the probability of a promise at risk may fall.
const tolerated = 0.01

// chance is how likely a running job meets its deadline; NaN if it has none or
// nobody knows.
func (d *decision) chance(i int, fate *ahead) float64 {
	m := &d.q.Others[i]
	if m.Left == 0 || math.IsInf(fate.end, 1) {
		return math.NaN()
	}
	o := outlook{
		seconds:     max(fate.end, tinySeconds),
		uncertainty: fate.spread(evidence.Distribution{}, float64(m.epochsLeft())),
		table:       d.r.EpochTime.residuals(fate.model, d.f.codes[fate.at[0]]),
		narrow:      fate.narrow,
		record:      d.q.Record,
		shift:       d.q.Record.shift(kindOf(&m.Setting)) + fate.wider,
	}
	p, ok := o.probability(m.Left.Seconds(), m.Confidence)
	if !ok {
		return math.NaN()
	}
	return p
}
