package advisor

import (
	"fmt"
	"math"
	"time"

	"courier/schemas"
)

// Defaults of what an advice must change to be news (product: an advice event). After
// each epoch the predicted end moves by about the scatter of epochs over the square root
// of those that count: with the usual 5 percent by less than 2 percent of what remains.
const (
	defaultMinChange   = 0.05             // of the remaining time
	defaultMinInterval = 30 * time.Second // after which an advice is repeated
)

// lastAdvice returns what the state keeps of an advice for a running job: what the next
// one is compared with, job.status shows, and a replay assumes. The rest is in the stream of
// advice; for thousands of running jobs it would be most of a snapshot.
func lastAdvice(a *schemas.Advice) *schemas.Advice {
	kept := &schemas.Advice{
		JobStamp:      a.JobStamp,
		CauseSequence: a.CauseSequence,
		Decision:      a.Decision,
		Action:        a.Action,
		Load:          a.Load,
	}
	if c := a.Chosen; c != nil {
		kept.Chosen = &schemas.Alternative{BatchSize: c.BatchSize, CPUs: c.CPUs, Epochs: c.Epochs}
		if c.PredictedSeconds != nil {
			seconds := *c.PredictedSeconds
			kept.Chosen.PredictedSeconds = &seconds
		}
	}
	return kept
}

// isNews reports whether an advice for a running job differs enough from the last one.
func (o *Options) isNews(last, next *schemas.Advice) bool {
	if last == nil || last.Run != next.Run || last.Decision != next.Decision ||
		last.Action != next.Action || next.At.Sub(last.At) >= o.AdviceMinInterval {
		return true
	}
	a, b := last.Chosen, next.Chosen
	if a.BatchSize != b.BatchSize || (a.PredictedSeconds == nil) != (b.PredictedSeconds == nil) {
		return true
	}
	if b.PredictedSeconds == nil {
		return false
	}
	was := last.At.Add(time.Duration(*a.PredictedSeconds * float64(time.Second)))
	is := next.At.Add(time.Duration(*b.PredictedSeconds * float64(time.Second)))
	return math.Abs(is.Sub(was).Seconds()) >= o.AdviceMinChange**b.PredictedSeconds
}

// clearRatio is how much of the room above the threshold a probability must
// have won back for an all-clear, so that it does not flap.
const clearRatio = 0.25

// warn compares a fresh advice for a running job with what was promised, and
// returns the warning or the all-clear that it calls for; nil: neither. A job is
// warned about once, if it was promised to keep its SLO, until it is cleared.
func warn(j *Job, q *Question, a *schemas.Advice) *schemas.Risk {
	if j.Promise == nil || j.Promise.Decision != schemas.MeetsSLO {
		return nil
	}
	now := a.Running(j.Setting.BatchSize, j.Setting.CPUs)
	if now == nil || now.Probability == nil || now.PredictedSeconds == nil {
		return nil
	}
	p, least := *now.Probability, q.least()
	warned := j.Risk != nil && j.Risk.Run == j.Run && !j.Risk.Cleared
	switch {
	case !warned && p < least:
	case warned && p >= least+clearRatio*(1-least):
	default:
		return nil
	}
	r := &schemas.Risk{
		Cleared:          warned,
		Probability:      p,
		Confidence:       a.Confidence,
		PredictedSeconds: *now.PredictedSeconds,
		LeftSeconds:      q.left(),
		Action:           string(schemas.ActionKeep),
	}
	r.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run}
	if warned {
		r.Cause = j.Risk.Cause
		r.Message = fmt.Sprintf("all clear: %s, kept with probability %s", needed(r),
			schemas.FormatProbability(p))
		return r
	}
	r.Cause = causeOf(j, a)
	if c := a.Chosen; a.Action == schemas.ActionBatch && c.Probability != nil {
		r.Action, r.BatchSize, r.SavedProbability = string(a.Action), c.BatchSize, c.Probability
		if c.PredictedAccuracy != nil && now.PredictedAccuracy != nil {
			loss := *now.PredictedAccuracy - *c.PredictedAccuracy
			r.AccuracyLoss = &loss
		}
	}
	r.Message = warning(r)
	return r
}

// warning says a risk in a sentence.
func warning(r *schemas.Risk) string {
	s := fmt.Sprintf("%s: the SLO is kept with probability %s, %.4g was asked for; %s",
		needed(r), schemas.FormatProbability(r.Probability), r.Confidence, causeText[r.Cause])
	if r.BatchSize == 0 {
		return s
	}
	s += fmt.Sprintf("; batch size %d keeps it with probability %s",
		r.BatchSize, schemas.FormatProbability(*r.SavedProbability))
	if r.AccuracyLoss != nil {
		s += fmt.Sprintf(" and costs %.4f of accuracy", *r.AccuracyLoss)
	}
	return s
}

// needed says what a job still takes and what the SLO leaves.
func needed(r *schemas.Risk) string {
	if r.LeftSeconds < 0 {
		return fmt.Sprintf("it takes %s more, and the SLO has been over for %s",
			schemas.FormatSeconds(r.PredictedSeconds), schemas.FormatSeconds(-r.LeftSeconds))
	}
	return fmt.Sprintf("it takes %s more of the %s that the SLO leaves",
		schemas.FormatSeconds(r.PredictedSeconds), schemas.FormatSeconds(r.LeftSeconds))
}

var causeText = map[string]string{
	schemas.CauseEpochs:     "its epochs take longer than predicted",
	schemas.CauseIOWait:     "its epochs take longer than predicted, and the node waits for its disks",
	schemas.CauseNeighbours: "more runs beside it than when it was promised",
	schemas.CauseForeign:    "work unknown to Courier takes more of its node than when it was promised",
	schemas.CauseLate:       "it was started late",
	schemas.CauseModel:      "the predictions have changed",
}

// Shares from which a cause counts.
const (
	slowRatio   = 0.03 // own epochs longer than predicted
	ioWaitRatio = 0.1  // of the node's processors, waiting
	lateRatio   = 0.05 // of the SLO, between submission and start
)

// rise is by how much a ratio has grown; 0 unless both values are known.
func rise(from, to schemas.Ratio) float64 {
	if !from.Known || !to.Known {
		return 0
	}
	return to.Value - from.Value
}

// causeOf names what speaks most for a risk: how much more other work takes of its node or how
// much more runs beside it, if either is the larger; then how much slower its own epochs are, or
// how much more its node waits for storage; then a late start.
func causeOf(j *Job, a *schemas.Advice) string {
	slow := a.EpochRatio - 1
	more := 0.0
	if promised := j.Promise.Load.Processes; promised > 0 {
		more = a.Load.Processes/promised - 1
	}
	foreign := rise(j.Promise.Load.ForeignCPURatio, a.Load.ForeignCPURatio)
	waits := rise(j.Promise.Load.ForeignIOWaitRatio, a.Load.ForeignIOWaitRatio)
	switch {
	case foreign > slowRatio && foreign >= more:
		return schemas.CauseForeign
	case more > slowRatio && more >= slow:
		return schemas.CauseNeighbours
	case max(slow, waits) > slowRatio && j.ioWait > ioWaitRatio:
		return schemas.CauseIOWait
	case slow > slowRatio:
		return schemas.CauseEpochs
	case j.StartedAt.Sub(j.Promise.At).Seconds() > lateRatio*a.SLOSeconds:
		return schemas.CauseLate
	}
	return schemas.CauseModel
}
