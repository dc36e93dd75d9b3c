package decide

import (
	"fmt"
	"time"

	"courier/schemas"
)

// minSpeedup is the minimum ratio of the predicted time with the current batch size to the upper bound with
// another one, from which a running job changes to that one. CPUs move for efficiency from the same ratio.
const minSpeedup = 1.05

// AdviseFaster returns the advice for a running job to change to the batch size of its request with the
// shortest remaining time, for the objective efficiency; nil if none is clearly better. a is the advice of
// Decide.
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

// isBetter reports whether an alternative with the same CPUs is clearly faster, at least as accurate and at
// least as likely to meet an SLO, by the runs that have ended. The uncertainty of its accuracy is at most twice
// that of the current one, which excludes an accuracy after more epochs than its runs had.
func isBetter(alt, current *schemas.Alternative) bool {
	spread := func(a *schemas.Alternative) float64 { return accuracy(a) - orZero(a.AccuracyLower) }
	return alt.CPUs == current.CPUs && !alt.Extrapolated && alt.UpperBoundSeconds != nil &&
		*alt.UpperBoundSeconds*minSpeedup <= *current.PredictedSeconds &&
		accuracy(current) > 0 && accuracy(alt) >= accuracy(current) && spread(alt) <= 2*spread(current) &&
		ProbabilityOf(alt) >= ProbabilityOf(current)
}
