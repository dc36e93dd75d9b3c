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
	minSavingRatio   = 0.05             // of the remaining time; less is within the prediction error
	restartBenefit   = 2                // minimum ratio of the saved time to the cost of a restart
	assumedStartup   = 20 * time.Second // cost of a restart if the start-up time is unknown
	maxAdviceAge     = 2                // epochs since the advice
	maxPendingEpochs = 3                // within which a job must apply the control file
	overdueShare     = 0.95             // of an epoch, after which the epoch is overdue
)

// adaptation decides which advised moves of one kind a run makes at the next epoch: to another batch
// size, or to another number of CPUs. It also decides whether a move was worthwhile. Its state
// follows from the advice and epochs alone; it performs no I/O.
//
//	current ──advice──► requested ──first epoch──► on trial ──third epoch──► kept
//	   ▲                    │ withdrawn or ignored                   └─────► undone, requested back
//	   └────────────────────┘
type adaptation struct {
	kind    string // schemas.MoveBatchSize or schemas.MoveCPUs
	means   string // such as schemas.ByControl; empty: the run does not adapt
	values  []int  // of the request
	epochs  uint32 // number of epochs of the job; 0: unknown
	current uint32 // value of the last epoch; initially that of the start

	done       uint32    // last epoch
	recent     []float64 // durations of the last epochs with the current value
	lastCause  uint64    // cause of the newest advice
	requested  *move     // requested from the job, and not applied yet
	onTrial    *move     // applied, and not assessed yet
	dryRun     *move     // last move that was reported as a dry run; nil: none
	dryEpochs  []float64 // durations of the epochs since that report
	dryReports map[dryReport]time.Time
	barredTill map[uint32]time.Time
	rejections map[string]time.Time // by value and reason; time of the last report
}

// dryReport identifies a dry run that was reported.
type dryReport struct {
	purpose  string
	from, to uint32
}

// move is a change of the batch size or of the CPUs.
type move struct {
	from, to    uint32
	cause       uint64 // of its advice
	requestedAt uint32 // last epoch when it was requested
	firstEpoch  uint32 // first epoch with the new value
	isUndo      bool   // it undoes another move, and is not assessed
	planned     schemas.PlannedMove
	batchSize   uint32 // of the job, for a move of CPUs

	deadline time.Time // of the SLO; zero: none

	probability, unmovedProbability *float64 // of meeting the SLO with and without it

	predicted, unchanged           *float64 // remaining seconds of the job with and without it
	predictedEpoch, unchangedEpoch *float64 // seconds of an epoch with and without it
	before                         *float64 // mean seconds of the epochs before it
	lastBefore                     float64  // seconds of the last epoch before it; 0: none
}

// adaptationStep is the decision that follows from advice or an epoch.
type adaptationStep struct {
	value uint32         // from the next epoch on; 0: no change
	moved *schemas.Moved // event to publish, without its stamp; nil: none
}

// newAdaptation returns the adaptation of the batch size.
func newAdaptation(means string, request *schemas.JobRequest, s *schemas.Setting) *adaptation {
	return &adaptation{
		kind:       schemas.MoveBatchSize,
		means:      means,
		values:     request.WithDefaults().BatchSizes,
		epochs:     s.Epochs,
		current:    s.BatchSize,
		barredTill: map[uint32]time.Time{},
		dryReports: map[dryReport]time.Time{},
		rejections: map[string]time.Time{},
	}
}

// newCPUAdaptation returns the adaptation of the CPUs of an elastic job.
func newCPUAdaptation(means string, request *schemas.JobRequest, s *schemas.Setting) *adaptation {
	a := newAdaptation(means, request, s)
	a.kind, a.values, a.current = schemas.MoveCPUs, request.CPUs, s.CPUs
	return a
}

// action returns the action of an advice that asks for a move of this kind.
func (a *adaptation) action() schemas.Action {
	if a.kind == schemas.MoveCPUs {
		return schemas.ActionCPUs
	}
	return schemas.ActionBatch
}

// valueOf returns the value of an alternative.
func (a *adaptation) valueOf(alt *schemas.Alternative) uint32 {
	if a.kind == schemas.MoveCPUs {
		return alt.CPUs
	}
	return alt.BatchSize
}

// name returns what the adaptation changes.
func (a *adaptation) name() string {
	if a.kind == schemas.MoveCPUs {
		return "number of CPUs"
	}
	return "batch size"
}

// format returns a value with what it counts.
func (a *adaptation) format(value uint32) string {
	if a.kind == schemas.MoveCPUs {
		return schemas.FormatCPUs(value)
	}
	return fmt.Sprintf("batch size %d", value)
}

func (a *adaptation) plural() string {
	if a.kind == schemas.MoveCPUs {
		return "numbers of CPUs"
	}
	return "batch sizes"
}

// addAdvice takes advice for this run. The last epoch ended elapsed before now, and startupSeconds
// is the start-up time of the job, or nil if unknown. Outdated or duplicate advice, and advice to
// keep the current value, starts no move.
func (a *adaptation) addAdvice(
	advice *schemas.Advice,
	now time.Time,
	elapsed time.Duration,
	startupSeconds *float64,
) adaptationStep {
	isNew := advice.CauseSequence > a.lastCause && advice.EpochsDone <= a.done
	if a.means == "" || advice.Chosen == nil || !isNew {
		return adaptationStep{}
	}
	a.lastCause = advice.CauseSequence
	to := a.valueOf(advice.Chosen)
	if advice.Action != a.action() || to == a.current {
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
	if reason := a.objection(m, advice, now, startupSeconds); reason != "" {
		return a.reject(m, reason, now)
	}
	if advice.SLOSeconds > 0 {
		left := advice.SLOSeconds - advice.ElapsedSeconds
		m.deadline = advice.At.Add(time.Duration(left * float64(time.Second)))
	}
	a.requested = m
	return adaptationStep{value: to}
}

// rehearse reports a move that is not carried out. A move with the same values and purpose is
// reported again only after repeatTime, even if other advice came in between.
func (a *adaptation) rehearse(m *move, now time.Time) adaptationStep {
	key := dryReport{m.planned.Purpose, m.from, m.to}
	if last, isKnown := a.dryReports[key]; isKnown && now.Before(last.Add(repeatTime)) {
		return adaptationStep{}
	}
	a.dryReports[key] = now
	a.dryRun, a.dryEpochs = m, nil
	m.before = mean(a.recent)
	return adaptationStep{moved: m.event(a, schemas.MoveDryRun, "moves are not turned on")}
}

// assessDryRun compares the epochs since a dry run with the prediction without the move.
func (a *adaptation) assessDryRun(seconds float64) adaptationStep {
	m := a.dryRun
	if m == nil || seconds <= 0 || len(a.dryEpochs) >= assessedEpochs {
		return adaptationStep{}
	}
	if a.dryEpochs = append(a.dryEpochs, seconds); len(a.dryEpochs) < assessedEpochs {
		return adaptationStep{}
	}
	after, reason := mean(a.dryEpochs), "moves are not turned on"
	if m.unchangedEpoch != nil && m.predictedEpoch != nil {
		reason = fmt.Sprintf("moves are not turned on: epochs take %s, predicted were %s, and %s with it",
			schemas.FormatSeconds(*after), schemas.FormatSeconds(*m.unchangedEpoch),
			schemas.FormatSeconds(*m.predictedEpoch))
	}
	e := m.event(a, schemas.MoveDryRun, reason)
	e.AfterEpochSeconds, e.EpochsMeasured = after, assessedEpochs
	return adaptationStep{moved: e}
}

// newMove returns the move that advice asks for.
func (a *adaptation) newMove(advice *schemas.Advice, elapsed time.Duration) *move {
	with := advice.Chosen
	m := &move{
		from:           a.current,
		to:             a.valueOf(with),
		batchSize:      with.BatchSize,
		cause:          advice.CauseSequence,
		requestedAt:    a.done,
		probability:    with.Probability,
		predicted:      with.PredictedSeconds,
		predictedEpoch: meanEpochSeconds(with, 0),
	}
	if advice.EpochsDone == 0 {
		elapsed = 0 // it was spent on the start-up
	}
	if advice.Move != nil {
		m.planned = *advice.Move
	}
	batchSize, cpus := a.current, with.CPUs
	if a.kind == schemas.MoveCPUs {
		batchSize, cpus = with.BatchSize, a.current
	}
	if without := advice.Running(batchSize, cpus); without != nil {
		m.unchanged, m.unmovedProbability = without.PredictedSeconds, without.Probability
		m.unchangedEpoch = meanEpochSeconds(without, elapsed.Seconds())
	}
	return m
}

// meanEpochSeconds returns the mean duration of the remaining epochs of an alternative, of which
// the first one has already run for elapsed seconds. For an overdue epoch, the advisor predicts a
// twentieth of an epoch as its remaining time.
func meanEpochSeconds(alt *schemas.Alternative, elapsed float64) *float64 {
	if alt.PredictedSeconds == nil || alt.Epochs == 0 {
		return nil
	}
	mean := (*alt.PredictedSeconds + elapsed) / float64(alt.Epochs)
	if elapsed > overdueShare*mean {
		mean = *alt.PredictedSeconds / (float64(alt.Epochs) - overdueShare)
	}
	return &mean
}

// objection returns why a move is not started, or an empty string. The text before a colon
// identifies the reason, see reject.
func (a *adaptation) objection(
	m *move,
	advice *schemas.Advice,
	now time.Time,
	startupSeconds *float64,
) string {
	barredTill, isBarred := a.barredTill[m.to]
	isLending := a.kind == schemas.MoveCPUs && m.to < m.from // costs time on purpose
	hasSaving := isLending || m.predicted == nil || m.unchanged == nil ||
		*m.predicted <= (1-minSavingRatio)**m.unchanged
	switch {
	case !slices.Contains(a.values, int(m.to)):
		return fmt.Sprintf("it is not among the requested %s: %v", a.plural(), a.values)
	case advice.EpochsDone+maxAdviceAge < a.done:
		return fmt.Sprintf("the advice is outdated: it follows epoch %d, but epoch %d has ended",
			advice.EpochsDone, a.done)
	case a.epochs > 0 && a.done+1 >= a.epochs:
		return "no epoch remains for it"
	case isBarred && now.Before(barredTill):
		return "it was undone or failed recently"
	case !hasSaving:
		return fmt.Sprintf("it saves too little: predicted are %s with it and %s without it",
			schemas.FormatSeconds(*m.predicted), schemas.FormatSeconds(*m.unchanged))
	case a.means == schemas.ByRestart && !isLending:
		return restartObjection(m, startupSeconds)
	}
	return ""
}

// restartObjection returns why a move is not worth a restart, or an empty string.
func restartObjection(m *move, startupSeconds *float64) string {
	cost := assumedStartup.Seconds()
	if startupSeconds != nil {
		cost = *startupSeconds
	}
	if m.predicted == nil || m.unchanged == nil {
		return "without a prediction, it is unknown whether it is worth a restart"
	}
	if saved := *m.unchanged - *m.predicted; saved < restartBenefit*cost {
		return fmt.Sprintf("it saves %s and a restart costs %s: it must save at least twice the cost",
			schemas.FormatSeconds(saved), schemas.FormatSeconds(cost))
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
	key := fmt.Sprint(m.to, kind)
	if last, isKnown := a.rejections[key]; isKnown && now.Before(last.Add(repeatTime)) {
		return adaptationStep{}
	}
	a.rejections[key] = now
	return adaptationStep{moved: m.event(a, schemas.MoveRefused, reason)}
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
func (a *adaptation) addEpoch(
	number, value uint32,
	seconds float64,
	now time.Time,
) adaptationStep {
	a.done = number
	if a.means == "" {
		return adaptationStep{}
	}

	s := a.assessDryRun(seconds)
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
	m.firstEpoch, m.before = number, mean(a.recent)
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
			schemas.FormatSeconds(*after), schemas.FormatSeconds(*m.predictedEpoch),
			schemas.FormatSeconds(*m.unchangedEpoch), max(0, *gain))
		if *gain < minGainShare && (a.epochs == 0 || a.done+1 < a.epochs) {
			outcome = schemas.MoveUndone
		}
	} else if text := a.tooSlow(m, *after, now); text != "" {
		outcome, reason = schemas.MoveUndone, text
	}

	s := adaptationStep{moved: m.event(a, outcome, reason)}
	s.moved.AfterEpochSeconds, s.moved.EpochsMeasured = after, assessedEpochs
	s.moved.GainRatio = gain
	if outcome == schemas.MoveUndone {
		a.barredTill[m.to] = now.Add(barTime)
		a.requested = &move{
			from:        m.to,
			to:          m.from,
			cause:       m.cause,
			requestedAt: a.done,
			isUndo:      true,
			batchSize:   m.batchSize,
		}
		s.value = m.from
	}
	return s
}

// tooSlow returns why a move that was predicted to cost time is undone; empty if it is kept. It is
// undone if it costs several times as much, the job would miss its SLO because of it, and some of the
// time until the deadline is left.
func (a *adaptation) tooSlow(m *move, after float64, now time.Time) string {
	if m.deadline.IsZero() || a.epochs <= a.done+1 || m.predictedEpoch == nil ||
		m.unchangedEpoch == nil {
		return ""
	}
	without := *m.unchangedEpoch
	if m.before != nil {
		without = *m.before
	}
	predicted, loss := *m.predictedEpoch / *m.unchangedEpoch - 1, after/without-1
	left, needed := m.deadline.Sub(now).Seconds(), float64(a.epochs-a.done)*after
	if loss < max(maxLossRatio*predicted, minLossRatio) || left <= 0 || needed <= left {
		return ""
	}
	return fmt.Sprintf("epochs take %s, predicted were %s, and %s without it: "+
		"the job needs %s, and %s are left", schemas.FormatSeconds(after),
		schemas.FormatSeconds(*m.predictedEpoch), schemas.FormatSeconds(*m.unchangedEpoch),
		schemas.FormatSeconds(needed), schemas.FormatSeconds(left))
}

// gain returns the measured share of the predicted gain, or nil if no gain was predicted. Gains
// are relative to an epoch without the move. Its duration is the predicted one, the mean of the
// last measured epochs or the last measured epoch, whichever is longest, because predictions and
// means are too short for a job that becomes slower.
func (m *move) gain(after float64) *float64 {
	if m.predictedEpoch == nil || m.unchangedEpoch == nil || *m.predictedEpoch >= *m.unchangedEpoch {
		return nil
	}
	without := max(*m.unchangedEpoch, m.lastBefore)
	if m.before != nil {
		without = max(without, *m.before)
	}
	gain := (1 - after/without) / (1 - *m.predictedEpoch / *m.unchangedEpoch)
	return &gain
}

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

// event returns the event of a move without its stamp.
func (m *move) event(a *adaptation, outcome, reason string) *schemas.Moved {
	e := &schemas.Moved{
		CauseSequence:         m.cause,
		Move:                  a.kind,
		Outcome:               outcome,
		Means:                 a.means,
		FromBatchSize:         m.from,
		ToBatchSize:           m.to,
		Epoch:                 m.firstEpoch,
		PredictedSeconds:      m.predicted,
		UnmovedSeconds:        m.unchanged,
		PredictedEpochSeconds: m.predictedEpoch,
		UnmovedEpochSeconds:   m.unchangedEpoch,
		BeforeEpochSeconds:    m.before,
		Reason:                reason,
		BeforeProbability:     m.unmovedProbability,
		AfterProbability:      m.probability,
	}
	if a.kind == schemas.MoveCPUs {
		e.FromCPUs, e.ToCPUs = m.from, m.to
		e.FromBatchSize, e.ToBatchSize = m.batchSize, m.batchSize
		e.Purpose, e.ForJob = m.planned.Purpose, m.planned.ForJob
		e.Rule, e.SlackSeconds, e.FreeCPUs = m.planned.Rule, m.planned.SlackSeconds, m.planned.FreeCPUs
		if len(m.planned.RejectedCPUs) == len(m.planned.RejectedReasons) {
			e.RejectedCPUs, e.RejectedReasons = m.planned.RejectedCPUs, m.planned.RejectedReasons
		}
	}
	return e
}

// mean returns the mean, or nil without values.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	m := sum / float64(len(values))
	return &m
}
