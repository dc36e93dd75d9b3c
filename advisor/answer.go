package advisor

import (
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// queueLength returns the number of queued jobs.
func (a *Advisor) queueLength() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.cluster.Queue())
}

// answer decides a request with the current state and regressors.
func (a *Advisor) answer(q schemas.JobRequest) *schemas.Advice {
	now := time.Now().UTC()
	a.mu.RLock()
	question, known := decide.Ask(a.cluster, q, now), a.applied
	a.mu.RUnlock()
	advice := decide.Decide(question, *a.regressors.Load(), now)
	advice.CauseSequence = known
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	return advice
}
