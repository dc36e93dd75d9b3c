package decide_test

import (
	"testing"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// Of the epochs that a request leaves open, the chosen number has the highest product of probability and
// accuracy: no other number that is asked for alone has a higher one.
func TestDecide_ChoosesTheEpochsOfHighestExpectedAccuracy(t *testing.T) {
	const most = 30 // all numbers up to it are considered
	r, now := evidenceRegressors(t), time.Unix(0, 0)
	worth := func(a *schemas.Advice) float64 {
		if a.Chosen.Probability == nil || a.Chosen.PredictedAccuracy == nil {
			return 0
		}
		return *a.Chosen.Probability * *a.Chosen.PredictedAccuracy
	}
	for _, slo := range []time.Duration{20 * time.Second, 100 * time.Second, 250 * time.Second, time.Hour} {
		ask := func(change func(*schemas.JobRequest)) *schemas.Advice {
			return decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
				q.BatchSizes, q.SLO = []int{128}, schemas.Duration(slo)
				change(q)
			}), r, now)
		}
		chosen := ask(func(q *schemas.JobRequest) { q.Epochs, q.MaxEpochs = 0, most })
		for n := 1; n <= most; n++ {
			fixed := ask(func(q *schemas.JobRequest) { q.Epochs = n })
			if worth(fixed) > 1.001*worth(chosen) {
				t.Errorf("SLO %s: %d epochs are worth %.4f, the chosen %d %.4f",
					slo, n, worth(fixed), chosen.Chosen.Epochs, worth(chosen))
			}
		}
	}
}
