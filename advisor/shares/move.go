package shares

import (
	"fmt"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/schemas"
)

// DecideMove returns the advice for a running job whose CPUs or data loaders should change: the prediction
// with the new ones is chosen, and the one with the current ones is the last alternative. It is pure like
// Decide.
func DecideMove(q *decide.Question, m schemas.PlannedMove, r decide.Regressors, at time.Time) *schemas.Advice {
	current := decide.Decide(q.WithCPUs([]int{int(m.FromCPUs)}), r, at)
	moved, action := q.WithCPUs([]int{int(m.ToCPUs)}), schemas.ActionCPUs
	if m.ToLoaders > 0 {
		moved, action = moved.WithLoaders(m.ToLoaders), schemas.ActionLoaders
	}
	a := decide.Decide(moved, r, at)
	unmoved := current.Alternatives[0]
	unmoved.Reason = decide.ReasonOtherCPUs
	if m.SpeedRatio > 0 {
		predictByOwnEpochs(q, a, &unmoved, m.SpeedRatio)
	}
	a.Alternatives = append(a.Alternatives, unmoved)
	a.Action, a.Move = action, &m
	a.Message = moveMessage(&m) + costMessage(&m, a.Chosen, &unmoved) + ": " + a.Message
	return a
}

// moveMessage returns why the CPUs or the data loaders of a job should change.
func moveMessage(m *schemas.PlannedMove) string {
	if m.ToLoaders > 0 {
		return fmt.Sprintf("%s instead of %d, because the training waits for its input: %.2f times as fast, "+
			"by its own epochs", schemas.FormatCount(uint64(m.ToLoaders), "loader"), m.FromLoaders, m.SpeedRatio)
	}
	text := schemas.FormatCPUs(m.ToCPUs) + " instead of " + schemas.FormatCPUs(m.FromCPUs)
	if reason := ruleMessage(m); reason != "" {
		return text + reason
	}
	switch m.Purpose {
	case schemas.MoveLent:
		if m.ForJob != "" {
			return text + ", lent to job " + m.ForJob
		}
		return text + ", lent to other jobs"
	case schemas.MoveForeignLoad:
		return text + ", because other work uses the node"
	case schemas.MoveReturned:
		return text + ", as before"
	case schemas.MoveAtRisk:
		return text + ", because the SLO is at risk"
	}
	return text + ", because no other job needs them for its SLO"
}

// ruleMessage returns why the CPUs change by a rule of an objective; empty for other rules.
func ruleMessage(m *schemas.PlannedMove) string {
	switch policy.Reason(m.Rule) {
	case policy.ReasonGrowing:
		if m.ToCPUs > m.FromCPUs {
			return ", because its loss falls fast"
		}
		return ", because the loss of other jobs falls faster"
	case policy.ReasonNewcomer:
		return ", until the fall of its loss is known"
	case policy.ReasonWatched, policy.ReasonCompleting:
		if m.ToCPUs < m.FromCPUs {
			return ", because its loss hardly falls"
		}
	case policy.ReasonCost:
		if m.ToCPUs < m.FromCPUs {
			return ", because they suffice for its SLO"
		}
		return ", because that saves core-seconds"
	case policy.ReasonSurplus:
		return ", because it would hardly use more"
	case policy.ReasonExchange:
		return ", because other jobs gain more from them"
	case policy.ReasonGrow:
		text := ", because they make it faster"
		if m.SpeedRatio > 0 {
			text += fmt.Sprintf(" by its own epochs: %.2f times, which no run has shown", m.SpeedRatio)
		}
		return text
	}
	return ""
}

// costMessage returns the predicted core-hours of a move for the least cost.
func costMessage(m *schemas.PlannedMove, with, without *schemas.Alternative) string {
	if policy.Reason(m.Rule) != policy.ReasonCost || with == nil ||
		with.PredictedSeconds == nil || without.PredictedSeconds == nil {
		return ""
	}
	hours := func(a *schemas.Alternative) float64 {
		return float64(a.CPUs) * *a.PredictedSeconds / 3600
	}
	return fmt.Sprintf(" (%.3g instead of %.3g core-hours)", hours(with), hours(without))
}

// predictByOwnEpochs fills in the times of a move that the job's own epochs predict. They are
// extrapolated, so they have neither a bound nor a probability.
func predictByOwnEpochs(q *decide.Question, a *schemas.Advice, unmoved *schemas.Alternative, speedRatio float64) {
	seconds := unmoved.PredictedSeconds
	if seconds == nil {
		seconds = q.Self.RemainingSeconds()
	}
	if seconds == nil || a.Chosen == nil {
		return
	}
	unmoved.PredictedSeconds = seconds
	moved := *seconds / speedRatio
	for _, alt := range []*schemas.Alternative{a.Chosen, &a.Alternatives[0]} {
		alt.PredictedSeconds, alt.Extrapolated = &moved, true
		alt.UpperBoundSeconds, alt.Probability, alt.CPUSeconds = nil, nil, nil
	}
}
