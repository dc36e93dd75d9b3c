package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Parameters of the adaptation (resource policies, section 1.3).
const (
	assessedEpochs   = 3                // number of epochs after which a move is assessed
	minGainShare     = 0.5              // of the predicted gain; a move with less is undone
	maxLossRatio     = 3                // of the measured to the predicted loss of a lending job
	minLossRatio     = 0.1              // of an epoch; a smaller loss is within the scatter of epochs
	barTime          = 10 * time.Minute // for which an undone or failed move is not repeated
	repeatTime       = 10 * time.Minute // until an unchanged dry run or rejection is reported again
	minPredictedGain = 0.01             // of an epoch; less is rounding
	minSavingRatio   = 0.05             // of the remaining time; less is within the prediction error
	restartBenefit   = 2                // minimum ratio of the saved time to the cost of a restart
	assumedStartup   = 20 * time.Second // cost of a restart if the start-up time is unknown
	maxAdviceAge     = 2                // epochs since the advice
	maxPendingEpochs = 3                // within which a job must apply the control file
	overdueShare     = 0.95             // of an epoch, after which the epoch is overdue
)

// adaptation decides which advised moves of one kind a run makes at the next epoch: to another batch
// size, or to another number of CPUs or data loaders. It also decides whether a move was worthwhile. Its
// state follows from the advice and epochs alone; it performs no I/O.
//
//	current ──advice──► requested ──first epoch──► on trial ──third epoch──► kept
//	   ▲                    │ withdrawn or ignored                   └─────► undone, requested back
//	   └────────────────────┘
type adaptation struct {
	moveKind
	means   string // such as schemas.ByControl; empty: the run does not adapt
	values  []int  // of the request
	epochs  uint32 // number of epochs of the job; 0: unknown
	current uint32 // value of the last epoch; initially that of the start

	done       uint32    // last epoch
	recent     []float64 // durations of the last epochs with the current value
	lastCause  uint64    // cause of the newest advice
	requested  *move     // requested from the job, and not applied yet
	onTrial    *move     // applied, and not assessed yet
	barredTill map[uint32]time.Time
	reports    map[string]time.Time // last one of each dry run and rejection
}

// adaptationStep is the decision that follows from advice or an epoch.
type adaptationStep struct {
	value uint32         // from the next epoch on; 0: no change
	moved *schemas.Moved // event to publish, without its stamp; nil: none
}

// newAdaptation returns the adaptation of a run to some values of its request.
func newAdaptation(kind moveKind, means string, values []int, s *schemas.Setting) *adaptation {
	return &adaptation{
		moveKind:   kind,
		means:      means,
		values:     values,
		epochs:     s.Epochs,
		current:    *kind.setting(s),
		barredTill: map[uint32]time.Time{},
		reports:    map[string]time.Time{},
	}
}

// addAdvice takes advice for this run. The last epoch ended elapsed before now, and startupSeconds
// is the start-up time of the job, or nil if unknown. Outdated or duplicate advice, and advice to
// keep the current value, starts no move. Outdated advice is not refused, which would bar its move.
func (a *adaptation) addAdvice(
	advice *schemas.Advice, now time.Time, elapsed time.Duration, startupSeconds *float64,
) adaptationStep {
	isNew := advice.CauseSequence > a.lastCause && advice.EpochsDone <= a.done &&
		advice.EpochsDone+maxAdviceAge >= a.done
	if a.means == "" || advice.Chosen == nil || !isNew {
		return adaptationStep{}
	}
	a.lastCause = advice.CauseSequence
	to := a.value(advice.Chosen)
	if advice.Action != a.action || to == a.current {
		return a.withdraw()
	}
	if advice.Move != nil && advice.Move.DryRun {
		return a.rehearse(a.newMove(advice, elapsed), now)
	}
	// Only one move at a time. A request that can be withdrawn is replaced.
	if a.onTrial != nil || a.requested != nil && (a.requested.to == to || !a.canWithdraw()) {
		return adaptationStep{}
	}

	m := a.newMove(advice, elapsed)
	if reason := a.objection(m, now, startupSeconds); reason != "" {
		return a.reject(m, reason, now)
	}
	if advice.SLOSeconds > 0 {
		left := advice.SLOSeconds - advice.ElapsedSeconds
		m.deadline = now.Add(time.Duration(left * float64(time.Second)))
	}
	a.requested = m
	return adaptationStep{value: to}
}

// rehearse reports a move that is not carried out. A move with the same values and purpose is
// reported again only after repeatTime, even if other advice came in between.
func (a *adaptation) rehearse(m *move, now time.Time) adaptationStep {
	if a.wasReported(fmt.Sprint(m.Purpose, m.from, m.to), now) {
		return adaptationStep{}
	}
	m.BeforeEpochSeconds = mean(a.recent)
	return adaptationStep{moved: m.event(a, schemas.MoveDryRun, "moves are not turned on")}
}

// objection returns why a move is not started, or an empty string. The text before a colon
// identifies the reason, see reject.
func (a *adaptation) objection(m *move, now time.Time, startupSeconds *float64) string {
	barredTill, isBarred := a.barredTill[m.to]
	isLending := a.kind == schemas.MoveCPUs && m.to < m.from // costs time on purpose
	hasSaving := isLending || m.PredictedSeconds == nil || m.UnmovedSeconds == nil ||
		*m.PredictedSeconds <= (1-minSavingRatio)**m.UnmovedSeconds
	switch {
	case !slices.Contains(a.values, int(m.to)):
		return fmt.Sprintf("it is not among the requested %s: %v", a.plural, a.values)
	case a.epochs > 0 && a.done+1 >= a.epochs:
		return "no epoch remains for it"
	case isBarred && now.Before(barredTill):
		return "it was undone or failed recently"
	case !hasSaving:
		return fmt.Sprintf("it saves too little: predicted are %s with it and %s without it",
			schemas.FormatSeconds(*m.PredictedSeconds), schemas.FormatSeconds(*m.UnmovedSeconds))
	case a.means == schemas.ByRestart && (!isLending || m.Purpose == schemas.MoveSaved):
		return restartObjection(m, startupSeconds)
	}
	return ""
}

// canWithdraw reports whether the requested move can be withdrawn. The job applies it when the
// epoch ends that was running at the request.
func (a *adaptation) canWithdraw() bool {
	return !a.requested.isUndo && a.done == a.requested.requestedAt
}

// withdraw withdraws the requested move if possible.
func (a *adaptation) withdraw() adaptationStep {
	if a.requested == nil || !a.canWithdraw() {
		return adaptationStep{}
	}
	a.requested = nil
	return adaptationStep{value: a.current}
}

// reject returns the event of a rejected move. A rejection with the same value and reason is
// reported again only after repeatTime, for which the advisor does not plan the move.
func (a *adaptation) reject(m *move, reason string, now time.Time) adaptationStep {
	kind, _, _ := strings.Cut(reason, ":")
	if a.wasReported(fmt.Sprint(m.to, kind), now) {
		return adaptationStep{}
	}
	return adaptationStep{moved: m.event(a, schemas.MoveRefused, reason)}
}

// wasReported reports whether something was reported less than repeatTime ago; otherwise it is now.
func (a *adaptation) wasReported(what string, now time.Time) bool {
	last, isKnown := a.reports[what]
	if isKnown && now.Before(last.Add(repeatTime)) {
		return true
	}
	a.reports[what] = now
	return false
}

// fail bars a value that could not be applied, and rejects the move to it if that is still requested.
func (a *adaptation) fail(to uint32, reason string, now time.Time) adaptationStep {
	a.barredTill[to] = now.Add(barTime)
	m := a.requested
	if m == nil || m.to != to {
		return adaptationStep{}
	}
	a.requested = nil
	return a.reject(m, reason, now)
}

// addEpoch takes an epoch with its batch size or number of CPUs. The duration is 0 if it is not
// usable.
func (a *adaptation) addEpoch(number, value uint32, seconds float64, now time.Time) adaptationStep {
	a.done = number
	if a.means == "" {
		return adaptationStep{}
	}

	var s adaptationStep
	switch m := a.requested; {
	case m != nil && value == m.to:
		s = a.applied(m, number, seconds)
	case m != nil && a.means == schemas.ByControl && number >= m.requestedAt+maxPendingEpochs:
		a.requested = nil
		s = a.reject(m, fmt.Sprintf("the training does not apply it: epoch %d ran with %s",
			number, a.format(value)), now)
		s.value = a.current
	}
	if value != a.current { // the training changed it by itself
		a.current, a.recent, a.onTrial = value, nil, nil
		if a.requested != nil {
			a.requested.from = value
		}
	}
	if seconds > 0 {
		a.recent = append(a.recent[max(0, len(a.recent)+1-assessedEpochs):], seconds)
	}
	if a.onTrial != nil && len(a.recent) == assessedEpochs {
		return a.assess(now)
	}
	return s
}

// applied records that the training has applied a move.
func (a *adaptation) applied(m *move, number uint32, seconds float64) adaptationStep {
	m.Epoch, m.BeforeEpochSeconds = number, mean(a.recent)
	if n := len(a.recent); n > 0 {
		m.lastBefore = a.recent[n-1]
	}
	a.requested, a.onTrial, a.current, a.recent = nil, m, m.to, nil
	if m.isUndo {
		a.onTrial = nil
		return adaptationStep{}
	}
	e := m.event(a, schemas.MoveCarriedOut, "")
	if seconds > 0 {
		e.AfterEpochSeconds, e.EpochsMeasured, e.GainRatio = &seconds, 1, m.gain(seconds)
	}
	return adaptationStep{moved: e}
}

// assess compares the measured gain of the move on trial with the predicted one.
func (a *adaptation) assess(now time.Time) adaptationStep {
	m, after := a.onTrial, mean(a.recent)
	a.onTrial = nil
	outcome, reason, gain := schemas.MoveKept, "no gain was predicted", m.gain(*after)
	if gain != nil {
		reason = fmt.Sprintf("epochs take %s, predicted were %s, and %s without it: "+
			"%.2f of the predicted gain",
			schemas.FormatSeconds(*after), schemas.FormatSeconds(*m.PredictedEpochSeconds),
			schemas.FormatSeconds(*m.UnmovedEpochSeconds), max(0, *gain))
		if *gain < minGainShare && (a.epochs == 0 || a.done+1 < a.epochs) {
			outcome = schemas.MoveUndone
		}
	} else if text := m.tooSlow(*after, int(a.epochs)-int(a.done), now); text != "" {
		outcome, reason = schemas.MoveUndone, text
	}

	s := adaptationStep{moved: m.event(a, outcome, reason)}
	s.moved.AfterEpochSeconds, s.moved.EpochsMeasured = after, assessedEpochs
	s.moved.GainRatio = gain
	if outcome == schemas.MoveUndone {
		a.barredTill[m.to] = now.Add(barTime)
		a.requested = &move{
			Moved:       schemas.Moved{CauseSequence: m.CauseSequence},
			from:        m.to,
			to:          m.from,
			requestedAt: a.done,
			isUndo:      true,
			batchSize:   m.batchSize,
		}
		s.value = m.from
	}
	return s
}

// wantsRestart reports whether the command must be restarted for the requested move.
func (a *adaptation) wantsRestart() bool { return a.means == schemas.ByRestart && a.requested != nil }

// end ends the adaptation, and rejects a requested move, because the run has ended or its command
// cannot be changed.
func (a *adaptation) end(reason string) adaptationStep {
	var s adaptationStep
	if m := a.requested; m != nil && !m.isUndo {
		s.moved = m.event(a, schemas.MoveRefused, reason)
	}
	a.means, a.requested, a.onTrial = "", nil, nil
	return s
}
