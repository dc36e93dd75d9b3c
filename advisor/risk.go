package advisor

import (
	"fmt"

	"courier/schemas"
)

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
