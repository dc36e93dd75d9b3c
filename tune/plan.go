package tune

import (
	"fmt"
	"math"

	"courier/policy/cost"
	"courier/schemas"
)

// UnreachableBound reports a bound that even the lower bound of the time or the cost exceeds. Smallest
// is the upper bound of what is needed.
type UnreachableBound struct {
	Flag     string
	Bound    string
	Smallest string
}

func (e *UnreachableBound) Error() string {
	return fmt.Sprintf("%s %s is too small for this tuning: want at least %s, or fewer trials or epochs",
		e.Flag, e.Bound, e.Smallest)
}

// replanRatio is the relative difference of the trials of a stage from the plan at which the
// resources are planned again (CE-scaling leaves it open).
const replanRatio = 0.2

// poolSpeeds returns the measured speeds with the allowed numbers of CPUs. Before any is measured,
// twice the CPUs are assumed to need half the time, which no promise rests on.
func (t *Tuning) poolSpeeds(v *speeds) (measured []cost.PoolSpeed, isAssumed bool) {
	alive := t.state.alive()
	for _, c := range t.o.CPUs {
		if seconds, ok := v.mean(alive, c); ok {
			measured = append(measured, cost.PoolSpeed{Cores: c, EpochSeconds: seconds, StartSeconds: v.startMean})
		}
	}
	if len(measured) > 0 && len(t.state.speed.segments) > 0 && t.nextProbe() == nil {
		return measured, false
	}
	measured = nil
	for _, c := range t.o.CPUs {
		measured = append(measured, cost.PoolSpeed{Cores: c, EpochSeconds: 1 / float64(c)})
	}
	return measured, true
}

// needsPlan reports whether the resources must be planned: at the start, when all numbers of CPUs
// are measured, when a stage of synchronous halving begins, when the command turned out not to
// continue, and when a stage has another number of trials than planned.
func (t *Tuning) needsPlan(numbers []int) bool {
	p := &t.planned
	if p.numbers == nil || p.continues != t.state.continues || p.isAssumed && t.nextProbe() == nil &&
		len(t.state.speed.segments) > 0 {
		return true
	}
	if p.isProvisional && !t.isEarly() {
		return true
	}
	if t.o.Algorithm == AlgorithmHalving && p.stage != t.state.currentStage() {
		return true
	}
	for i, n := range numbers {
		if difference := max(n-p.numbers[i], p.numbers[i]-n); difference > 0 &&
			float64(difference) >= replanRatio*float64(p.numbers[i]) {
			return true
		}
	}
	return false
}

// plan chooses the CPUs of the unfinished stages. It returns an UnreachableBound if the first plan
// on measured times does not fit.
func (t *Tuning) plan() error {
	s := t.state
	numbers := s.expectedTrials()
	if !t.needsPlan(numbers) {
		return nil
	}
	v := s.speed.fit()
	measured, isAssumed := t.poolSpeeds(v)
	t.planned = plannedFor{numbers: numbers, continues: s.continues, isAssumed: isAssumed, stage: s.currentStage()}

	var left []cost.Stage // the trials that are not finished
	var open []int
	for i, stage := range steps(s.stages, s.continues) {
		if stage.Trials = numbers[i] - s.finishedTrials(i); stage.Trials > 0 {
			left, open = append(left, stage), append(open, i)
		}
	}
	if len(left) == 0 {
		return nil
	}
	fronts := cost.PoolFronts(left, measured, t.o.Pool)
	chosen, err := t.choose(fronts, v, isAssumed)
	if err != nil {
		return err
	}
	return t.adopt(fronts, chosen, open, measured, isAssumed)
}

// choose returns the plan whose upper bound keeps --max-time or --budget: the cheapest one within a
// time, the fastest one within a budget, or else the fastest one. If none does, it returns the one
// that comes nearest, but an error for the first plan if even its lower bound exceeds that of the user.
func (t *Tuning) choose(fronts cost.StageFronts, v *speeds, isAssumed bool) (cost.Plan, error) {
	if isAssumed || t.o.MaxTime == 0 && t.o.Budget == 0 {
		return fronts.Fastest(), nil
	}
	if t.o.MaxTime > 0 {
		left, used := t.limitSeconds()-t.elapsed(), t.elapsed()+t.o.Grace.Seconds()
		p, err := fronts.CheapestWithin(left / v.margin())
		if err == nil {
			return p, nil
		}
		p = fronts.Fastest()
		return p, t.warnOrRefuse(p.Seconds > left*v.margin(), &UnreachableBound{
			"--max-time", t.o.MaxTime.String(),
			schemas.FormatSeconds(roundUp(used + p.Seconds*v.margin())),
		})
	}
	left := t.o.Budget*secondsPerHour - t.state.spent
	p, err := fronts.FastestWithin(left / v.margin())
	if err == nil {
		return p, nil
	}
	p = fronts.Cheapest()
	return p, t.warnOrRefuse(p.Cost > left*v.margin(), &UnreachableBound{
		"--budget", formatCoreHours(t.o.Budget * secondsPerHour), formatCoreHours(t.state.spent + p.Cost*v.margin()),
	})
}

// roundUp rounds seconds up to tenths, and above ten to seconds.
func roundUp(seconds float64) float64 {
	if seconds >= 10 {
		return math.Ceil(seconds)
	}
	return math.Ceil(10*seconds) / 10
}

// warnOrRefuse returns an error if the first plan of a tuning exceeds its bound, and warns if a later
// one does, or one that only may.
func (t *Tuning) warnOrRefuse(exceeds bool, e *UnreachableBound) error {
	if exceeds && !t.state.hasPlan() {
		if t.isEarly() {
			t.planned.isProvisional = true
			return nil
		}
		return e
	}
	t.message("%s %s may not suffice for all stages, which need up to %s: it ends with the best so far", e.Flag,
		e.Bound, e.Smallest)
	return nil
}

// refusalEpochs is the number of measured epochs on which a refusal rests, unless the first stage has
// fewer. The first ones of a busy machine may be much slower than the rest.
const refusalEpochs = 8

// isEarly reports whether too few epochs were measured to refuse a bound.
func (t *Tuning) isEarly() bool {
	return !t.isBlocked && t.state.currentStage() == 0 && t.state.speed.epochs() < refusalEpochs
}

// adopt makes a plan the current one. A plan on measured times is recorded, with the prediction for
// the whole of each stage that has not begun, or began before anything was measured.
func (t *Tuning) adopt(
	fronts cost.StageFronts, chosen cost.Plan, open []int, measured []cost.PoolSpeed, isAssumed bool,
) error {
	s := t.state
	all := steps(s.stages, s.continues)
	var plans []StagePlan
	for i, stage := range open {
		cores := fronts[i][chosen.Options[i]].Cores
		t.cpus[stage] = cores
		whole := all[stage]
		whole.Trials = t.planned.numbers[stage]
		for _, o := range whole.PoolOptions(measured, t.o.Pool) {
			isNew := !s.spans[stage].hasStarted || s.plan[stage].CPUs == 0
			if o.Cores == cores && isNew {
				plans = append(plans, StagePlan{stage, whole.Trials, cores, o.Seconds, o.Cost})
			}
		}
	}
	if isAssumed || t.planned.isProvisional || len(plans) == 0 {
		return nil
	}
	t.planMessage(plans)
	return t.add(&recordLine{Kind: kindPlan, Stages: plans})
}
