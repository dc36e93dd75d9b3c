package decide_test

import (
	"testing"

	"courier/advisor/decide"
	"courier/schemas"
)

// A higher target accuracy never has a higher probability after the same epochs. A job that stops at its
// target never has an earlier end; its probability is that of the fewest epochs that suffice.
func TestDecide_AHigherTargetIsNoMoreProbableAndNoEarlier(t *testing.T) {
	r := evidenceRegressors(t)
	batches := []int{32, 48, 64, 128, 256}
	ask := func(epochs int, target float64) []schemas.Alternative {
		return decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
			q.BatchSizes, q.TargetAccuracy = batches, target
			if q.Epochs = epochs; epochs == 0 {
				q.MaxEpochs = 40
			}
		}), r, evidenceBegin).Alternatives
	}
	fixed, stopping := ask(20, 0.05), ask(0, 0.05)
	for target := 0.055; target < 0.9; target += 0.005 {
		higher, later := ask(20, target), ask(0, target)
		for i := range batches {
			low, high := &fixed[i], &higher[i]
			if *high.AccuracyProbability > *low.AccuracyProbability || *high.Probability > *low.Probability {
				t.Errorf("batch size %d, target %.3f: probability %g, in time %g; for a lower target %g, %g",
					batches[i], target, *high.AccuracyProbability, *high.Probability,
					*low.AccuracyProbability, *low.Probability)
			}
			isPromised := decide.ProbabilityOf(&later[i]) > 0.5
			if isPromised && *later[i].PredictedSeconds < *stopping[i].PredictedSeconds {
				t.Errorf("batch size %d, target %.3f: reached after %g s, a lower target after %g s",
					batches[i], target, *later[i].PredictedSeconds, *stopping[i].PredictedSeconds)
			}
		}
		fixed, stopping = higher, later
	}
}
