package advisor

import (
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// needsBusyCPUs reports whether a job that is not promised its SLO would have to share the CPUs of
// other jobs. It waits for free ones: beside more jobs than CPUs every job becomes slower, and nothing
// is known about how much.
func (a *Advisor) needsBusyCPUs(advice *schemas.Advice) bool {
	if advice.Decision == schemas.MeetsSLO || advice.Chosen == nil {
		return false
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	own := float64(advice.Chosen.Processes()) / float64(max(1, len(advice.Nodes)))
	return slices.ContainsFunc(advice.Nodes, func(node string) bool {
		return shares.NeedsBusyCPUs(a.cluster, node, own, a.now())
	})
}

// sharesCPUs reports whether the deadline policy plans the CPUs of the job: it is elastic, and runs on one
// node, whose cores are known. A job that may have several workers is not planned, because the policy
// chooses CPUs only. If moves are not turned on, the job is planned beside the CPUs that the running jobs
// hold.
func (a *Advisor) sharesCPUs(q *schemas.JobRequest, advice *schemas.Advice) bool {
	if !q.Elastic || q.HasShapes() || len(advice.Nodes) != 1 {
		return false
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Cores(advice.Nodes[0]) > 0
}

// askNodes returns the question of a job that would run on some nodes; nil if it no longer waits. It is
// called with the lock held.
type askNodes func(nodes []string, now time.Time) *decide.Question

// admitByShares returns advice for a job that may start under the plan for the CPUs of its node, or
// nil. If everywhere is set and the job names no node, it may also start on another node than that of
// its placement.
func (a *Advisor) admitByShares(held *schemas.Advice, everywhere bool, ask askNodes) *schemas.Advice {
	now := a.now()
	admitted, q := a.admitOn(held.Nodes, ask, now)
	if admitted == nil && q != nil && everywhere {
		a.mu.RLock()
		others := a.cluster.OtherNodes(&q.Request, held.Nodes, now)
		a.mu.RUnlock()
		for _, node := range others {
			if admitted, _ = a.admitOn([]string{node}, ask, now); admitted != nil {
				break
			}
		}
	}
	if admitted != nil {
		admitted.CauseSequence, admitted.Admission.Policy = held.CauseSequence, a.o.Admission
	}
	return admitted
}

// admitOn returns advice for a job that may start on a node under the plan for its CPUs, or nil. It
// returns no question if no plan can admit the job: it runs on several nodes, or it is not elastic and no
// job may lend it CPUs. A job that may have several workers waits until its CPUs are free.
func (a *Advisor) admitOn(nodes []string, ask askNodes, now time.Time) (*schemas.Advice, *decide.Question) {
	isFixed := a.o.MoveCPUs != MovesOn
	a.mu.RLock()
	q := ask(nodes, now)
	if q == nil || len(nodes) > 1 || q.Request.HasShapes() || isFixed && !q.Request.Elastic {
		a.mu.RUnlock()
		return nil, nil
	}
	var pool *shares.Pool
	if len(nodes) == 1 {
		pool = shares.PoolOf(a.cluster, nodes[0], now)
	}
	a.mu.RUnlock()
	if pool == nil {
		return nil, q
	}
	pool.IsFixed = isFixed
	admit := pool.MakeRoom
	if q.Request.Elastic {
		admit = pool.Admit
	}
	return admit(q, *a.regressors.Load(), now), q
}
