package collector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Numbers of the rules for moves (resource policies, 1.3).
const (
	judgedEpochs  = 3                // after which a move is judged
	leastGain     = 0.5              // of the gain that was predicted, else it is undone
	barTime       = 10 * time.Minute // for which an undone move is not done again
	leastSaving   = 0.05             // of the time that is left, else a move is within what predictions err by
	restartWorth  = 2                // times its cost is what a restart must save at least
	restartCost   = 20 * time.Second // of a restart whose start-up was not seen
	freshEpochs   = 2                // an advice from before so many epochs is out of date
	patientEpochs = 3                // within which a training takes up what the control file says
	lateShare     = 0.95             // of an epoch, from which it is late
)

// mover decides what a run makes of advice: which batch size it takes from the
// next epoch on, and whether that was worth it. It is a fold over advice and
// epochs, and does nothing itself.
//
//	present ──advice──► asked ──first epoch with it──► on trial ──third──► kept
//	   ▲                  │ withdrawn, not taken up                  └───► undone: asked back
//	   └──────────────────┘
type mover struct {
	means   string // schemas.ByControl or ByRestart; "": advice only
	sizes   []int  // batch sizes that the request allows
	epochs  uint32 // to run; 0 if unknown
	present uint32 // batch size of the newest epoch, of the start at first

	done    uint32    // newest epoch
	recent  []float64 // seconds of the last epochs with present, at most judgedEpochs
	newest  uint64    // cause of the newest advice
	asked   *move     // of the training, and not seen yet
	trial   *move     // seen, and not judged yet
	barred  map[uint32]time.Time
	refused map[string]bool // what was told already
}

// move is a change of the batch size.
type move struct {
	from, to uint32
	cause    uint64 // of its advice
	at       uint32 // newest epoch when it was asked for
	epoch    uint32 // the first with it
	undoes   bool   // it takes another back: nobody judges it

	predicted, unmoved           *float64 // seconds of the rest of the job, with it and without
	predictedEpoch, unmovedEpoch *float64 // seconds of an epoch
	before                       *float64 // measured, the mean of the last ones
	last                         float64  // of them; 0: none
}

// step is what follows from an advice or an epoch.
type step struct {
	batch uint32         // to run from the next epoch on; 0: as it does
	moved *schemas.Moved // to tell, without its stamp; nil: nothing
}

func newMover(means string, request *schemas.JobRequest, s *schemas.Setting) *mover {
	q := request.WithDefaults()
	return &mover{means: means, sizes: q.BatchSizes, epochs: s.Epochs, present: s.BatchSize, barred: map[uint32]time.Time{}, refused: map[string]bool{}}
}

// advise takes an advice for this run that arrives now, spent after the newest
// epoch ended. startup is what a start takes; nil if unknown. What is out of
// date, a copy, or news of what runs already changes nothing.
func (m *mover) advise(a *schemas.Advice, now time.Time, spent time.Duration, startup *float64) step {
	if m.means == "" || a.Chosen == nil || a.CauseSequence <= m.newest || a.EpochsDone > m.done {
		return step{}
	}
	m.newest = a.CauseSequence
	to := a.Chosen.BatchSize
	if a.Action != schemas.ActionBatch || to == m.present {
		return m.withdraw()
	}
	if m.trial != nil || m.asked != nil && (m.asked.to == to || !m.revocable()) {
		return step{} // one move at a time
	}
	next := m.move(a, spent)
	if reason := m.objection(next, a, now, startup); reason != "" {
		return m.refuse(next, reason)
	}
	m.asked = next
	return step{batch: to}
}

// move makes the move that an advice asks for.
func (m *mover) move(a *schemas.Advice, spent time.Duration) *move {
	with, without := a.Chosen, a.Running(m.present, a.Chosen.CPUs)
	next := &move{from: m.present, to: with.BatchSize, cause: a.CauseSequence, at: m.done, predicted: with.PredictedSeconds, predictedEpoch: epochSeconds(with, 0)}
	if a.EpochsDone == 0 {
		spent = 0 // on the start-up
	}
	if without != nil {
		next.unmoved, next.unmovedEpoch = without.PredictedSeconds, epochSeconds(without, spent.Seconds())
	}
	return next
}

// epochSeconds is the mean time of the epochs that an alternative has left, on
// the first of which some seconds were spent already. Of an epoch that is late
// the advisor leaves a twentieth.
func epochSeconds(alt *schemas.Alternative, spent float64) *float64 {
	if alt.PredictedSeconds == nil || alt.Epochs == 0 {
		return nil
	}
	mean := (*alt.PredictedSeconds + spent) / float64(alt.Epochs)
	if spent > lateShare*mean {
		mean = *alt.PredictedSeconds / (float64(alt.Epochs) - lateShare)
	}
	return &mean
}

// objection is what speaks against a move; "": nothing.
func (m *mover) objection(next *move, a *schemas.Advice, now time.Time, startup *float64) string {
	until, barred := m.barred[next.to]
	switch {
	case !slices.Contains(m.sizes, int(next.to)):
		return fmt.Sprintf("it is not among the batch sizes that were asked for: %v", m.sizes)
	case a.EpochsDone+freshEpochs < m.done:
		return fmt.Sprintf("the advice is out of date: it was given after epoch %d, and epoch %d is over", a.EpochsDone, m.done)
	case m.epochs > 0 && m.done+1 >= m.epochs:
		return "no epoch is left for it"
	case barred && now.Before(until):
		return "it was undone a short time ago"
	case next.predicted != nil && next.unmoved != nil && *next.predicted > (1-leastSaving)**next.unmoved:
		return fmt.Sprintf("it saves too little: %.3g s are predicted with it, and %.3g s without", *next.predicted, *next.unmoved)
	case m.means == schemas.ByRestart:
		return tooDear(next, startup)
	}
	return ""
}

// tooDear says why a move is not worth a restart; "" if it is.
func tooDear(next *move, startup *float64) string {
	cost := restartCost.Seconds()
	if startup != nil {
		cost = *startup
	}
	if next.predicted == nil || next.unmoved == nil {
		return "nobody knows whether it is worth a restart"
	}
	if saved := *next.unmoved - *next.predicted; saved < restartWorth*cost {
		return fmt.Sprintf("it saves %.3g s and a restart costs %.3g s: want twice that", saved, cost)
	}
	return ""
}

// revocable reports whether what was asked for can be taken back: the training
// takes it up when the epoch ends that ran then.
func (m *mover) revocable() bool { return !m.asked.undoes && m.done == m.asked.at }

// withdraw takes back what was asked for, where it can.
func (m *mover) withdraw() step {
	if m.asked == nil || !m.revocable() {
		return step{}
	}
	m.asked = nil
	return step{batch: m.present}
}

// refuse tells a refusal, once for each move and reason.
func (m *mover) refuse(next *move, reason string) step {
	kind, _, _ := strings.Cut(reason, ":")
	key := fmt.Sprint(next.to, kind)
	if m.refused[key] {
		return step{}
	}
	m.refused[key] = true
	return step{moved: next.event(m.means, schemas.MoveRefused, reason)}
}

// epoch takes an epoch that ran with a batch size. seconds is 0 where they hold
// more than the epoch.
func (m *mover) epoch(number, batch uint32, seconds float64, now time.Time) step {
	m.done = number
	if m.means == "" {
		return step{}
	}
	var taken step
	switch a := m.asked; {
	case a != nil && batch == a.to:
		taken = m.take(a, number, seconds)
	case a != nil && m.means == schemas.ByControl && number >= a.at+patientEpochs:
		m.asked = nil
		taken = m.refuse(a, fmt.Sprintf("the training does not take it up: epoch %d ran with batch size %d", number, batch))
		taken.batch = m.present
	}
	if batch != m.present { // the training's own choice
		m.present, m.recent, m.trial = batch, nil, nil
		if m.asked != nil {
			m.asked.from = batch
		}
	}
	if seconds > 0 {
		m.recent = append(m.recent[max(0, len(m.recent)+1-judgedEpochs):], seconds)
	}
	if m.trial != nil && len(m.recent) == judgedEpochs {
		return m.judge(now)
	}
	return taken
}

// take notes that the training runs as it was asked to.
func (m *mover) take(a *move, number uint32, seconds float64) step {
	a.epoch, a.before = number, mean(m.recent)
	if n := len(m.recent); n > 0 {
		a.last = m.recent[n-1]
	}
	m.asked, m.trial, m.present, m.recent = nil, a, a.to, nil
	if a.undoes {
		m.trial = nil
		return step{}
	}
	e := a.event(m.means, schemas.MoveCarriedOut, "")
	if seconds > 0 {
		e.AfterEpochSeconds, e.EpochsMeasured, e.GainRatio = &seconds, 1, a.gain(seconds)
	}
	return step{moved: e}
}

// judge compares what a move brought with what was predicted.
func (m *mover) judge(now time.Time) step {
	t, after := m.trial, mean(m.recent)
	m.trial = nil
	outcome, reason, gain := schemas.MoveKept, "no gain of time was predicted", t.gain(*after)
	if gain != nil {
		reason = fmt.Sprintf("epochs of %.3g s, predicted were %.3g s, and %.3g s without it: %.2f of the gain", *after, *t.predictedEpoch, *t.unmovedEpoch, max(0, *gain))
		if *gain < leastGain && (m.epochs == 0 || m.done+1 < m.epochs) {
			outcome = schemas.MoveUndone
		}
	}
	s := step{moved: t.event(m.means, outcome, reason)}
	s.moved.AfterEpochSeconds, s.moved.EpochsMeasured, s.moved.GainRatio = after, judgedEpochs, gain
	if outcome == schemas.MoveUndone {
		m.barred[t.to] = now.Add(barTime)
		m.asked = &move{from: t.to, to: t.from, cause: t.cause, at: m.done, undoes: true}
		s.batch = t.from
	}
	return s
}

// gain is the share of the predicted gain in time that came; nil if none was
// predicted. Gains are shares of an epoch without the move: what was predicted of
// it in the company that it has now, or what was measured of the last ones or of
// the very last, whichever is longest, because predictions and means follow a job
// that slows down late.
func (v *move) gain(after float64) *float64 {
	if v.predictedEpoch == nil || v.unmovedEpoch == nil || *v.predictedEpoch >= *v.unmovedEpoch {
		return nil
	}
	without := max(*v.unmovedEpoch, v.last)
	if v.before != nil {
		without = max(without, *v.before)
	}
	gain := (1 - after/without) / (1 - *v.predictedEpoch / *v.unmovedEpoch)
	return &gain
}

// end gives up what was asked for and did not come: the run has ended, or its
// command cannot be changed. No move is done after it.
func (m *mover) end(reason string) step {
	var s step
	if a := m.asked; a != nil && !a.undoes {
		s = m.refuse(a, reason)
	}
	m.means, m.asked, m.trial = "", nil, nil
	return s
}

// event tells what became of a move.
func (v *move) event(means, outcome, reason string) *schemas.Moved {
	return &schemas.Moved{CauseSequence: v.cause, Move: schemas.MoveBatchSize, Outcome: outcome, Means: means, FromBatchSize: v.from, ToBatchSize: v.to, Epoch: v.epoch,
		PredictedSeconds: v.predicted, UnmovedSeconds: v.unmoved, PredictedEpochSeconds: v.predictedEpoch, UnmovedEpochSeconds: v.unmovedEpoch, BeforeEpochSeconds: v.before, Reason: reason}
}

// mean is nil of nothing.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	sum /= float64(len(values))
	return &sum
}
