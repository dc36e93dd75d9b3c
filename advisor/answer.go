package advisor

import (
	"courier/advisor/decide"
	"courier/schemas"
)

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

// checkNodes returns an error that names a node of a request which is not in the cluster. A cluster
// without collectors knows no nodes and accepts all.
func (a *Advisor) checkNodes(q *schemas.JobRequest) error {
	if q.NewNodes {
		return nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, name := range q.Nodes {
		if a.cluster.Node(name) != nil {
			continue
		}
		known := a.cluster.KnownNodes()
		if len(known) == 0 {
			return nil
		}
		return schemas.Invalid("nodes", "no collector and no job has reported node %q; known nodes: %s",
			name, schemas.FormatList(known))
	}
	return nil
}
