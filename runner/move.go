package runner

import (
	"fmt"
	"time"

	"courier/schemas"
)

// moveKind is what an adaptation changes.
type moveKind struct {
	kind   string         // schemas.MoveBatchSize, MoveCPUs or MoveLoaders
	action schemas.Action // of an advice that asks for a move
	name   string
	plural string
	value  func(*schemas.Alternative) uint32
	format func(uint32) string // a value with what it counts

	control func(*controlFile) *uint32
	setting func(*schemas.Setting) *uint32
}

var (
	batchSizeMoves = moveKind{
		kind:   schemas.MoveBatchSize,
		action: schemas.ActionBatch,
		name:   "batch size",
		plural: "batch sizes",
		value:  func(alt *schemas.Alternative) uint32 { return alt.BatchSize },
		format: schemas.FormatBatchSize,

		control: func(c *controlFile) *uint32 { return &c.BatchSize },
		setting: func(s *schemas.Setting) *uint32 { return &s.BatchSize },
	}
	cpuMoves = moveKind{
		kind:   schemas.MoveCPUs,
		action: schemas.ActionCPUs,
		name:   "number of CPUs",
		plural: "numbers of CPUs",
		value:  func(alt *schemas.Alternative) uint32 { return alt.CPUs },
		format: schemas.FormatCPUs,

		control: func(c *controlFile) *uint32 { return &c.CPUs },
		setting: func(s *schemas.Setting) *uint32 { return &s.CPUs },
	}
	loaderMoves = moveKind{
		kind:   schemas.MoveLoaders,
		action: schemas.ActionLoaders,
		name:   "number of loaders",
		plural: "numbers of loaders",
		value:  func(alt *schemas.Alternative) uint32 { return alt.Loaders },
		format: func(n uint32) string { return schemas.FormatCount(uint64(n), "loader") },

		control: func(c *controlFile) *uint32 { return &c.Loaders },
		setting: func(s *schemas.Setting) *uint32 { return &s.Loaders },
	}
)

// move is a change of the batch size, the CPUs or the data loaders, with the event that reports it, which
// has no stamp, outcome, means or values yet.
type move struct {
	schemas.Moved
	from, to    uint32
	requestedAt uint32    // last epoch when it was requested
	isUndo      bool      // it undoes another move, and is not assessed
	isOwn       bool      // its prediction is by the job's own epochs
	batchSize   uint32    // of the job, for other moves
	deadline    time.Time // of the SLO; zero: none
	lastBefore  float64   // seconds of the last epoch before it; 0: none
}

// newMove returns the move that advice asks for.
func (a *adaptation) newMove(advice *schemas.Advice, elapsed time.Duration) *move {
	with := advice.Chosen
	m := &move{
		Moved: schemas.Moved{
			CauseSequence:         advice.CauseSequence,
			PredictedSeconds:      with.PredictedSeconds,
			PredictedEpochSeconds: meanEpochSeconds(with, 0),
			AfterProbability:      with.Probability,
		},
		from:        a.current,
		to:          a.value(with),
		batchSize:   with.BatchSize,
		requestedAt: a.done,
	}
	if advice.EpochsDone == 0 {
		elapsed = 0 // it was spent on the start-up
	}
	var without *schemas.Alternative
	switch a.kind {
	case schemas.MoveBatchSize:
		without = advice.Running(a.current, with.CPUs)
	case schemas.MoveCPUs:
		without = advice.Running(with.BatchSize, a.current)
	case schemas.MoveLoaders: // it differs from the chosen alternative only in the loaders
		without = &advice.Alternatives[len(advice.Alternatives)-1]
	}
	if without != nil {
		m.UnmovedSeconds, m.BeforeProbability = without.PredictedSeconds, without.Probability
		m.UnmovedEpochSeconds = meanEpochSeconds(without, elapsed.Seconds())
	}
	if p := advice.Move; p != nil && a.kind != schemas.MoveBatchSize {
		m.Purpose, m.ForJob, m.Rule, m.isOwn = p.Purpose, p.ForJob, p.Rule, p.SpeedRatio > 0
		m.SlackSeconds, m.FreeCPUs, m.Bottleneck = p.SlackSeconds, p.FreeCPUs, string(p.Bottleneck)
		if len(p.RejectedCPUs) == len(p.RejectedReasons) {
			m.RejectedCPUs, m.RejectedReasons = p.RejectedCPUs, p.RejectedReasons
		}
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

// restartObjection returns why a move is not worth a restart, or an empty string.
func restartObjection(m *move, startupSeconds *float64) string {
	cost := assumedStartup.Seconds()
	if startupSeconds != nil {
		cost = *startupSeconds
	}
	if m.PredictedSeconds == nil || m.UnmovedSeconds == nil {
		return "without a prediction, it is unknown whether it is worth a restart"
	}
	if m.Purpose == schemas.MoveSaved {
		if cost > minSavingRatio**m.UnmovedSeconds {
			return fmt.Sprintf("it saves CPUs only, and a restart costs %s of the remaining %s",
				schemas.FormatSeconds(cost), schemas.FormatSeconds(*m.UnmovedSeconds))
		}
		return ""
	}
	if saved := *m.UnmovedSeconds - *m.PredictedSeconds; saved < restartBenefit*cost {
		return fmt.Sprintf("it saves %s and a restart costs %s: it must save at least twice the cost",
			schemas.FormatSeconds(saved), schemas.FormatSeconds(cost))
	}
	return ""
}

// gain returns the measured share of the predicted gain, or nil if no gain was predicted. Gains
// are relative to an epoch without the move. Its duration is the predicted one, the mean of the
// last measured epochs or the last measured epoch, whichever is longest, because predictions and
// means are too short for a job that becomes slower.
func (m *move) gain(after float64) *float64 {
	predicted, unmoved := m.PredictedEpochSeconds, m.UnmovedEpochSeconds
	if predicted == nil || unmoved == nil || *predicted >= (1-minPredictedGain)**unmoved {
		return nil
	}
	without := max(*unmoved, m.lastBefore)
	if m.BeforeEpochSeconds != nil {
		without = max(without, *m.BeforeEpochSeconds)
	}
	return new((1 - after/without) / (1 - *predicted / *unmoved))
}

// tooSlow returns why a move that was predicted to cost time is undone; empty if it is kept. It is undone
// if it costs several times as much, and no other job needs it for its SLO. Otherwise it is undone only if
// the job would miss its own SLO because of it, and its deadline has not passed.
func (m *move) tooSlow(after float64, epochsLeft int, now time.Time) string {
	isFree := m.Purpose == schemas.MoveSaved || m.isOwn // other jobs do not need it for their SLOs
	if m.deadline.IsZero() && !isFree || epochsLeft <= 1 || m.PredictedEpochSeconds == nil ||
		m.UnmovedEpochSeconds == nil {
		return ""
	}
	without := *m.UnmovedEpochSeconds
	if m.BeforeEpochSeconds != nil {
		without = *m.BeforeEpochSeconds
	}
	predicted, loss := *m.PredictedEpochSeconds / *m.UnmovedEpochSeconds - 1, after/without-1
	if loss < max(maxLossRatio*predicted, minLossRatio) {
		return ""
	}
	text := fmt.Sprintf("epochs take %s, predicted were %s, and %s without it", schemas.FormatSeconds(after),
		schemas.FormatSeconds(*m.PredictedEpochSeconds), schemas.FormatSeconds(*m.UnmovedEpochSeconds))
	if isFree {
		return text
	}
	left, needed := m.deadline.Sub(now).Seconds(), float64(epochsLeft)*after
	if left <= 0 || needed <= left {
		return ""
	}
	return text + fmt.Sprintf(": the job needs %s, and %s are left",
		schemas.FormatSeconds(needed), schemas.FormatSeconds(left))
}

// event returns the event of a move without its stamp.
func (m *move) event(a *adaptation, outcome, reason string) *schemas.Moved {
	e := m.Moved
	e.Move, e.Outcome, e.Means, e.Reason = a.kind, outcome, a.means, reason
	e.FromBatchSize, e.ToBatchSize = m.batchSize, m.batchSize
	switch a.kind {
	case schemas.MoveBatchSize:
		e.FromBatchSize, e.ToBatchSize = m.from, m.to
	case schemas.MoveCPUs:
		e.FromCPUs, e.ToCPUs = m.from, m.to
	case schemas.MoveLoaders:
		e.FromLoaders, e.ToLoaders = m.from, m.to
	}
	return &e
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
	return new(sum / float64(len(values)))
}
