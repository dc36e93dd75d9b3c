package tune

import (
	"math"

	"courier/schemas"
	"courier/tune/halving"
)

// hasTimes reports whether the times of epochs were measured with each number of CPUs.
func (t *Tuning) hasTimes() bool { return len(t.state.speed.segments) > 0 && t.nextProbe() == nil }

// poolSpeeds returns the measured speeds with the allowed numbers of CPUs. Before all are measured,
// twice the CPUs are assumed to need half the time, which no promise rests on.
func (t *Tuning) poolSpeeds(v *speeds) (measured []halving.PoolSpeed, isAssumed bool) {
	alive := t.state.alive()
	for _, c := range t.o.CPUs {
		if seconds, ok := v.mean(alive, c); ok && t.hasTimes() {
			measured = append(measured, halving.PoolSpeed{Cores: c, EpochSeconds: seconds, StartSeconds: v.startMean})
		}
	}
	if len(measured) > 0 {
		return measured, false
	}
	for _, c := range t.o.CPUs {
		measured = append(measured, halving.PoolSpeed{Cores: c, EpochSeconds: 1 / float64(c)})
	}
	return measured, true
}

// needsPlan reports whether the resources must be planned: at the start, when all numbers of CPUs
// are measured, when a stage begins, and when the command turned out not to continue.
func (t *Tuning) needsPlan() bool {
	p := t.planned
	return p == nil || p.continues != t.state.continues || p.isAssumed && t.hasTimes() ||
		p.stage != t.state.currentStage()
}

// plan chooses the CPUs of the unfinished stages. A plan on measured times is recorded, with the
// prediction for the whole of each stage that has not begun, or began before anything was measured.
func (t *Tuning) plan() error {
	s := t.state
	if !t.needsPlan() {
		return nil
	}
	v, numbers := s.speed.fit(), s.expectedTrials()
	measured, isAssumed := t.poolSpeeds(v)
	t.planned = &plannedFor{continues: s.continues, isAssumed: isAssumed, stage: s.currentStage()}

	all := steps(s.stages, s.continues)
	var left []halving.Stage // the trials that are not finished
	var open []int
	for i, stage := range all {
		if stage.Trials = numbers[i] - s.finishedTrials(i); stage.Trials > 0 {
			left, open = append(left, stage), append(open, i)
		}
	}
	if len(left) == 0 {
		return nil
	}
	fronts := halving.PoolFronts(left, measured, t.o.Pool)
	chosen := fronts.Fastest()
	if !isAssumed {
		chosen = t.choose(fronts, v)
	}
	var plans []StagePlan
	for i, stage := range open {
		cores := fronts[i][chosen.Options[i]].Cores
		t.cpus[stage] = cores
		whole := all[stage]
		whole.Trials = numbers[stage]
		for _, o := range whole.PoolOptions(measured, t.o.Pool) {
			isNew := !s.rows[stage].hasStarted || s.rows[stage].CPUs == 0
			if o.Cores == cores && isNew {
				plans = append(plans, StagePlan{stage, whole.Trials, cores, o.Seconds, o.Cost})
			}
		}
	}
	if isAssumed || len(plans) == 0 {
		return nil
	}
	t.planMessage(plans)
	return t.add(&recordLine{Kind: kindPlan, Stages: plans, Exceeds: t.needs != ""})
}

// choose returns the plan whose upper bound keeps --max-time or --budget: the cheapest one within a
// time, the fastest one within a budget, or else the fastest one. If none does, it warns, and returns
// the one that comes nearest.
func (t *Tuning) choose(fronts halving.StageFronts, v *speeds) halving.Plan {
	t.needs = ""
	var p halving.Plan
	var err error
	switch {
	case t.o.MaxTime > 0:
		if p, err = fronts.CheapestWithin((t.limitSeconds() - t.elapsed()) / v.margin()); err != nil {
			p = fronts.Fastest()
			t.needs = "--max-time " + schemas.FormatSeconds(math.Ceil(
				t.elapsed()+t.o.Grace.Seconds()+p.Seconds*v.margin()))
		}
	case t.o.Budget > 0:
		if p, err = fronts.FastestWithin((t.o.Budget*secondsPerHour - t.state.spent) / v.margin()); err != nil {
			p = fronts.Cheapest()
			t.needs = "--budget " + formatCoreHours(t.state.spent+p.Cost*v.margin())
		}
	default:
		return fronts.Fastest()
	}
	if t.needs != "" {
		t.message("all stages need up to %s: it ends with the best so far", t.needs)
	}
	return p
}
