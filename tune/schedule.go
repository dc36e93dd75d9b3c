package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"courier/schemas"
)

// nextTrial is a trial that may start with a stage.
type nextTrial struct {
	trial *trialState
	stage int
}

// mayStart reports whether a trial can run a stage: it has completed the one before.
func (t *trialState) mayStart(stage int) bool {
	return !t.isOut() && !t.isRunning && t.Stage == stage
}

// candidates returns the trials of the first unfinished stage. A stage begins when that before it has
// ended, with the best of its trials.
func (s *tuningState) candidates() (next []nextTrial) {
	members := make([]*trialState, len(s.trials))
	for i := range s.trials {
		members[i] = &s.trials[i]
	}
	for stage := range s.stages {
		if stage > 0 {
			members = s.top(stage-1, s.stages[stage].Trials)
			members = slices.DeleteFunc(members, func(t *trialState) bool {
				return t.isOut() && t.entered <= stage
			})
		}
		isEnded := true
		for _, t := range members {
			if !t.isOut() && t.Stage <= stage {
				isEnded = false
			}
			if t.mayStart(stage) {
				next = append(next, nextTrial{t, stage})
			}
		}
		if !isEnded {
			return next
		}
	}
	return next
}

// nextProbe returns the probe that is needed next: a repetition of the first epochs of a trial with a
// number of CPUs of which the time is not known. It is nil if none is, or if no trial has completed
// a stage yet. The probed trial ran with other CPUs before, so that only the CPUs differ.
func (t *Tuning) nextProbe() *Segment {
	s := t.state
	needsTimes := len(t.o.CPUs) > 1 || t.o.MaxTime > 0 || t.o.Budget > 0
	if !needsTimes || len(s.speed.segments) == 0 {
		return nil
	}
	trial := s.trial(s.speed.segments[0].trial)
	if trial.isOut() {
		return nil
	}
	v := s.speed.fit()
	epochs := 1
	if s.speed.startsInEpochs {
		epochs = 2 // the first one includes the start of the command
	}
	for _, c := range t.o.CPUs {
		if _, isKnown := v.cpus[c]; !isKnown && s.speed.probes[c] == 0 {
			return &Segment{ID: s.lastID + 1, Trial: trial.Trial, CPUs: c, Epochs: epochs, IsProbe: true}
		}
	}
	return nil
}

// next returns the segment that can start now; nil if none can, with why nothing can start at all.
func (t *Tuning) next() (g *Segment, reason string) {
	free := t.o.Pool
	for _, a := range t.state.running() {
		free -= a.CPUs
		if a.IsProbe {
			return nil, "" // nothing else starts, so that the next plan has all times
		}
	}
	v := t.state.speed.fit()
	if probe := t.nextProbe(); probe != nil {
		if reason := t.wouldExceed(v, probe); reason != "" {
			return nil, reason
		}
		if probe.CPUs > free {
			return nil, ""
		}
		return probe, ""
	}
	for _, n := range t.state.candidates() {
		g := t.segment(n)
		if g.CPUs > free {
			return nil, ""
		}
		refusal := t.wouldExceed(v, g)
		if refusal == "" {
			return g, ""
		}
		reason = cmp.Or(reason, refusal)
	}
	return nil, reason
}

// segment returns the segment of a trial in a stage with the planned CPUs.
func (t *Tuning) segment(n nextTrial) *Segment {
	return &Segment{
		ID:     t.state.lastID + 1,
		Trial:  n.trial.Trial,
		Stage:  n.stage,
		CPUs:   t.cpus[n.stage],
		From:   n.trial.Epochs,
		Epochs: t.state.stages[n.stage].Epochs,
	}
}

// wouldExceed returns why a segment must not start: by the measured upper bound it would end after
// --max-time, or the running segments would need more than --budget. An unknown time does not keep
// a segment from starting, because it is stopped at the bound.
func (t *Tuning) wouldExceed(v *speeds, g *Segment) string {
	seconds, isKnown := t.boundOf(v, g)
	left := t.limitSeconds() - t.elapsed()
	if left <= 0 {
		return t.limitReason()
	}
	if isKnown && seconds > left {
		return fmt.Sprintf("--max-time %s: trial %d needs up to %s for stage %d, and %s are left",
			t.o.MaxTime, g.Trial, schemas.FormatSeconds(seconds), g.Stage+1, schemas.FormatSeconds(left))
	}
	if t.o.Budget == 0 {
		return ""
	}
	budget := t.o.Budget*secondsPerHour - t.state.spent
	if budget <= 0 {
		return t.limitReason()
	}
	for _, a := range t.state.running() {
		bound, _ := t.boundOf(v, &a.Segment)
		budget -= float64(a.CPUs) * max(bound, t.elapsed()-a.startedAt)
	}
	if cost := float64(g.CPUs) * seconds; isKnown && cost > budget || budget <= 0 {
		return fmt.Sprintf("--budget %s: trial %d needs up to %s for stage %d, and %s are left",
			formatCoreHours(t.o.Budget*secondsPerHour), g.Trial, formatCoreHours(cost), g.Stage+1,
			formatCoreHours(max(0, budget)))
	}
	return ""
}

// boundOf returns the upper bound of the seconds of a segment.
func (t *Tuning) boundOf(v *speeds, g *Segment) (seconds float64, isKnown bool) {
	epochs := g.Epochs
	if t.state.continues && g.From < g.Epochs {
		epochs -= g.From
	}
	return v.bound(g.Trial, g.CPUs, epochs)
}

// limitSeconds returns the elapsed seconds at which all segments must have been asked to stop, so
// that they end before --max-time; infinity without one.
func (t *Tuning) limitSeconds() float64 {
	if t.o.MaxTime == 0 {
		return math.Inf(1)
	}
	return (t.o.MaxTime - t.o.Grace).Seconds()
}

// untilLimit returns the seconds until the time or the budget is used up.
func (t *Tuning) untilLimit() float64 {
	left := t.limitSeconds() - t.elapsed()
	if t.o.Budget == 0 {
		return left
	}
	budget, cpus := t.o.Budget*secondsPerHour-t.state.spent, 0
	for _, a := range t.state.running() {
		budget -= float64(a.CPUs) * (t.elapsed() - a.startedAt)
		cpus += a.CPUs
	}
	if cpus > 0 {
		left = min(left, budget/float64(cpus))
	}
	return left
}

// limitReason returns which limit was reached.
func (t *Tuning) limitReason() string {
	limit := "--budget " + formatCoreHours(t.o.Budget*secondsPerHour)
	if t.o.MaxTime > 0 {
		limit = "--max-time " + t.o.MaxTime.String()
	}
	if len(t.state.speed.epochs) == 0 {
		return limit + " is used up before the time of an epoch was measured"
	}
	return limit + " is used up"
}
