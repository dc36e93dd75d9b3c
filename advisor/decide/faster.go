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
// rest of it is shortest, for the objective efficiency; nil if none is clearly shorter. By the runs that
// have ended, the model must be as accurate with it, and an SLO as likely to be kept.
func AdviseFaster(q *Question, a *schemas.Advice, r Regressors, at time.Time) *schemas.Advice {
	now := q.Self.Setting
	current := a.Running(now.BatchSize, now.CPUs)
	if a.Action != schemas.ActionKeep || !hasTimeAndAccuracy(current) {
		return nil
	}
	var best *schemas.Alternative
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		switch {
		case alt.CPUs != now.CPUs || alt.Extrapolated || !hasTimeAndAccuracy(alt) || alt.UpperBoundSeconds == nil:
		case *alt.PredictedAccuracy < *current.PredictedAccuracy || ProbabilityOf(alt) < ProbabilityOf(current):
		case *alt.UpperBoundSeconds*minSpeedup > *current.PredictedSeconds:
		case best == nil || *alt.PredictedSeconds < *best.PredictedSeconds:
			best = alt
		}
	}
	if best == nil {
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

func hasTimeAndAccuracy(alt *schemas.Alternative) bool {
	return alt != nil && alt.PredictedSeconds != nil && alt.PredictedAccuracy != nil
}
