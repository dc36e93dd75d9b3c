package tune

import (
	"fmt"
	"strconv"
	"strings"

	"courier/schemas"
)

// TuningProgress is the state of a tuning after a change.
type TuningProgress struct {
	Message string // what happened; empty: only figures have changed
	Done    int    // trials that have ended a stage, counted once for each stage
	Total   int    // expected at the end
	Text    string // stage, best trial, predicted rest and running trials in a few words
}

// notify reports the current state with a message.
func (t *Tuning) notify(message string) {
	if t.report == nil {
		return
	}
	s := t.state
	p := TuningProgress{Message: message}
	seconds, coreSeconds, isKnown := 0.0, 0.0, true
	for i, n := range s.expectedTrials() {
		finished := min(n, s.finishedTrials(i))
		p.Done, p.Total = p.Done+finished, p.Total+n
		if n > finished {
			left := float64(n-finished) / float64(n)
			seconds += left * s.rows[i].PredictedSeconds
			coreSeconds += left * s.rows[i].PredictedCoreSeconds
			isKnown = isKnown && s.rows[i].CPUs > 0
		}
	}
	parts := []string{fmt.Sprintf("stage %d of %d", s.currentStage()+1, len(s.stages))}
	if b := s.best(); b != nil {
		parts = append(parts, fmt.Sprintf("best %s (trial %d)", s.figureText(b), b.Trial))
	}
	if isKnown {
		parts = append(parts, fmt.Sprintf("%s, %s left", schemas.FormatRunning(seconds), formatCoreHours(coreSeconds)))
	}
	if t.o.MaxTime > 0 {
		parts = append(parts, "end in at most "+schemas.FormatRunning(max(0, t.o.MaxTime.Seconds()-t.elapsed())))
	}
	var running []string
	for _, a := range s.running() {
		epoch := 0
		if n := len(a.epochs); n > 0 {
			epoch = a.epochs[n-1].Number
		} else if s.continues {
			epoch = a.From
		}
		running = append(running, fmt.Sprintf("%d (%d/%d)", a.Trial, epoch, a.Epochs))
	}
	if len(running) > 0 {
		parts = append(parts, "running "+strings.Join(running, ", "))
	}
	p.Text = strings.Join(parts, ", ")
	t.report(p)
}

// message reports a message with the current state.
func (t *Tuning) message(format string, values ...any) { t.notify(fmt.Sprintf(format, values...)) }

// figureText returns the figure by which a trial is ranked.
func (s *tuningState) figureText(t *trialState) string {
	return s.objective + " " + formatFigure(s.figure(&t.RankedTrial))
}

// startText describes the start of a segment.
func (t *Tuning) startText(g *Segment) string {
	cpus := schemas.FormatCPUs(uint32(g.CPUs))
	if g.IsProbe {
		return fmt.Sprintf("trial %d: %s with %s again, to measure the time of an epoch", g.Trial,
			schemas.FormatCount(uint64(g.Epochs), "epoch"), cpus)
	}
	text := fmt.Sprintf("stage %d, trial %d with %s:", g.Stage+1, g.Trial, cpus)
	switch {
	case g.From == 0:
		for i, p := range t.o.Space {
			text += " " + p.Name + "=" + t.state.trial(g.Trial).values[i]
		}
		return text
	case !t.state.continues:
		return fmt.Sprintf("%s to epoch %d, from the beginning", text, g.Epochs)
	}
	return fmt.Sprintf("%s from epoch %d to %d", text, g.From, g.Epochs)
}

// endText describes the end of a segment.
func (t *Tuning) endText(g *Segment, e *Ending) string {
	trial := t.state.trial(g.Trial)
	text, seconds := fmt.Sprintf("stage %d, trial %d", g.Stage+1, g.Trial), schemas.FormatRunning(e.Seconds)
	switch {
	case g.IsProbe && e.Outcome == OutcomeFailed:
		return fmt.Sprintf("trial %d failed with %s, which is not used: %s", g.Trial,
			schemas.FormatCPUs(uint32(g.CPUs)), e.Reason)
	case g.IsProbe:
		return fmt.Sprintf("trial %d: measured in %s", g.Trial, seconds)
	case e.Outcome == OutcomeStopped:
		return fmt.Sprintf("%s: stopped after %s", text, seconds)
	case trial.isOut():
		return fmt.Sprintf("%s is out: %s", text, trial.Reason)
	}
	return fmt.Sprintf("%s: %s after %s and %s", text, t.state.figureText(trial),
		schemas.FormatCount(uint64(max(0, trial.Epochs)), "epoch"), seconds)
}

// planMessage reports a plan.
func (t *Tuning) planMessage(plans []StagePlan) {
	seconds, coreSeconds := 0.0, 0.0
	var parts []string
	for _, p := range plans {
		seconds, coreSeconds = seconds+p.Seconds, coreSeconds+p.CoreSeconds
		parts = append(parts, fmt.Sprintf("stage %d: %s of %s", p.Stage+1,
			schemas.FormatCount(uint64(p.Trials), "trial"), schemas.FormatCPUs(uint32(p.CPUs))))
	}
	t.message("plan: %s; %s and %s predicted", strings.Join(parts, ", "), schemas.FormatRunning(seconds),
		formatCoreHours(coreSeconds))
}

// formatCoreHours writes core-seconds for people.
func formatCoreHours(coreSeconds float64) string {
	return strconv.FormatFloat(coreSeconds/secondsPerHour, 'g', 4, 64) + " core-hours"
}

// formatFigure writes a loss or an accuracy; "-" if it is unknown.
func formatFigure(v *float64) string { return schemas.OptionalNumber(v, "%.5g") }
