package advisor

import (
	"courier/advisor/decide"
	"courier/schemas"
)

// queuedFor returns the number of queued jobs that may run on one of some nodes.
func (a *Advisor) queuedFor(nodes []string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.QueuedFor(nodes, a.now())
}

// answer decides a request with the current state and regressors.
func (a *Advisor) answer(q schemas.JobRequest) *schemas.Advice {
	now := a.now()
	a.mu.RLock()
	question, known := decide.Ask(a.cluster, q, now), a.applied
	a.mu.RUnlock()
	advice := decide.Decide(question, *a.regressors.Load(), now)
	advice.CauseSequence = known
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	return advice
}
