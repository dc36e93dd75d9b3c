package advisor

import (
	"fmt"
	"math"
	"time"

	"courier/schemas"
)

// What an advice must change to be worth telling (product: an advice event).
const (
	movedRatio = 0.02             // of the remaining time, by which the predicted end has moved
	repeatTime = 30 * time.Second // after which a running job is told again
)

// worthTelling reports whether an advice for a running job says something new.
func worthTelling(last, next *schemas.Advice) bool {
	if last == nil || last.Run != next.Run || last.Decision != next.Decision || last.Action != next.Action || next.At.Sub(last.At) >= repeatTime {
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
	return math.Abs(is.Sub(was).Seconds()) >= movedRatio**b.PredictedSeconds
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
	r := &schemas.Risk{Cleared: warned, Probability: p, Confidence: a.Confidence, PredictedSeconds: *now.PredictedSeconds, LeftSeconds: q.left(), Action: string(schemas.ActionKeep)}
	r.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run}
	if warned {
		r.Cause = j.Risk.Cause
		r.Message = fmt.Sprintf("all clear: %.3g s of %.3g s are left, kept with probability %.3f", r.PredictedSeconds, r.LeftSeconds, p)
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
	s := fmt.Sprintf("%.3g s are needed and %.3g s left: the SLO is kept with probability %.3f, %.3g was asked for; %s", r.PredictedSeconds, r.LeftSeconds, r.Probability, r.Confidence, causeText[r.Cause])
	if r.BatchSize == 0 {
		return s
	}
	s += fmt.Sprintf("; batch size %d keeps it with probability %.3f", r.BatchSize, *r.SavedProbability)
	if r.AccuracyLoss != nil {
		s += fmt.Sprintf(" and costs %.4f of accuracy", *r.AccuracyLoss)
	}
	return s
}

var causeText = map[string]string{
	schemas.CauseEpochs:     "its epochs take longer than predicted",
	schemas.CauseIOWait:     "its epochs take longer than predicted, and the node waits for its disks",
	schemas.CauseNeighbours: "more runs beside it than when it was promised",
	schemas.CauseLate:       "it was started late",
	schemas.CauseModel:      "the predictions have changed",
}

// Shares from which a cause counts.
const (
	slowRatio   = 0.03 // own epochs longer than predicted
	ioWaitRatio = 0.1  // of the node's processors, waiting
	lateRatio   = 0.05 // of the SLO, between submission and start
)

// causeOf names what speaks most for a risk: the larger of how much slower its
// own epochs are and how much more runs beside it; then a late start.
func causeOf(j *Job, a *schemas.Advice) string {
	slow := a.EpochRatio - 1
	more := 0.0
	if promised := j.Promise.Load.Processes; promised > 0 {
		more = a.Load.Processes/promised - 1
	}
	switch {
	case more > slowRatio && more >= slow:
		return schemas.CauseNeighbours
	case slow > slowRatio && j.ioWait > ioWaitRatio:
		return schemas.CauseIOWait
	case slow > slowRatio:
		return schemas.CauseEpochs
	case j.StartedAt.Sub(j.Promise.At).Seconds() > lateRatio*a.SLOSeconds:
		return schemas.CauseLate
	}
	return schemas.CauseModel
}
