package decide

import (
	"fmt"
	"time"

	"courier/schemas"
)

// minSpeedup is the ratio of the predicted time with the present batch size to the bound of the time with
// another one, from which a running job changes. It is that from which CPUs move for efficiency.
const minSpeedup = 1.05

// AdviseFaster returns the advice for a running job to take the batch size of its request with which the
// rest of it is shortest, for the objective efficiency; nil if none is surely better. a is the usual advice.
func AdviseFaster(q *Question, a *schemas.Advice, r Regressors, at time.Time) *schemas.Advice {
	now := q.Self.Setting
	current := a.Running(now.BatchSize, now.CPUs)
	if a.Action != schemas.ActionKeep || current == nil || current.PredictedSeconds == nil {
		return nil
	}
	best := current
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; isBetter(alt, current) && *alt.PredictedSeconds < *best.PredictedSeconds {
			best = alt
		}
	}
	if best == current {
		return nil
	}
	faster := *q
	faster.Request.BatchSizes = []int{int(best.BatchSize)}
	advice := Decide(&faster, r, at)
	advice.Action, advice.Alternatives = schemas.ActionBatch, a.Alternatives
	advice.Message = fmt.Sprintf("%s instead of %d, because it is as accurate and the rest is %.2f times as fast: %s",
		schemas.FormatBatchSize(best.BatchSize), now.BatchSize, *current.PredictedSeconds / *best.PredictedSeconds,
		advice.Message)
	return advice
}

// isBetter reports whether an alternative with the same CPUs is surely faster by the runs that have ended,
// the model as accurate, and an SLO as likely to be kept.
func isBetter(alt, current *schemas.Alternative) bool {
	return alt.CPUs == current.CPUs && !alt.Extrapolated && alt.UpperBoundSeconds != nil &&
		*alt.UpperBoundSeconds*minSpeedup <= *current.PredictedSeconds &&
		accuracy(current) > 0 && accuracy(alt) >= accuracy(current) && ProbabilityOf(alt) >= ProbabilityOf(current)
}
