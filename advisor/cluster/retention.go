package cluster

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Limits of the jobs that have ended, and of those that were submitted and have not started. Queued and
// running jobs are never dropped, nor a job that has just been admitted.
const (
	// maxEndedJobs bounds the ended jobs that job.status, job.list and job.score know: five days with
	// 10,000 jobs per day. The job that ended first is dropped first.
	maxEndedJobs = 50_000
	// maxLabelBytes bounds the labels of an ended job, which keeps all or none.
	maxLabelBytes = 512
	// maxReasonBytes bounds the reason of the end of a job.
	maxReasonBytes = 512
)

// updateEnded updates the list of the jobs that may be dropped: those that have ended, and submitted ones
// that may never start. A job that has just been admitted stays, because it reserves CPUs.
func (c *Cluster) updateEnded(j *Job, now time.Time) {
	isPending := j.IsPending() && (j.State != schemas.StateSubmitted || j.IsExpected(now))
	switch {
	case isPending && j.EndOrder > 0:
		c.ended.remove(j)
		j.EndOrder = 0
	case !isPending && j.EndOrder == 0:
		c.ends++
		j.EndOrder = c.ends
		c.ended.put(j)
	}
}

// expireArrivals removes the jobs that exceeded schemas.Reservation from the arrivals. They may be dropped.
func (c *Cluster) expireArrivals(now time.Time) {
	for len(c.arrivals.order.all) > 0 && !c.arrivals.order.all[0].IsExpected(now) {
		j := c.arrivals.order.all[0]
		c.arrivals.remove(j)
		c.updateEnded(j, now)
	}
}

// dropEnded drops the jobs that ended first, beyond the limit.
func (c *Cluster) dropEnded() {
	for len(c.ended.all) > c.limits.ended {
		j := c.ended.all[0]
		delete(c.jobs, j.ID)
		c.ended.remove(j)
		c.order.remove(j)
	}
}

// evictNames evicts the least recently used nodes without running jobs, and models, beyond their limits.
func (c *Cluster) evictNames() {
	useOfNode := func(n *Node) (uint64, bool) { return n.LastUse, len(n.Running) > 0 }
	for _, name := range leastUsed(c.nodes, c.limits.nodes, useOfNode) {
		delete(c.nodes, name)
		delete(c.fleet, name)
	}
	useOfModel := func(m *Model) (uint64, bool) { return m.LastUse, false }
	for _, level := range leastUsed(c.models, c.limits.models, useOfModel) {
		delete(c.models, level)
	}
}

// leastUsed returns the least recently used names beyond a limit, except those that are in use. It scans
// and sorts all names, so it returns a sixteenth of the limit more: the next scan comes only after as many
// new names.
func leastUsed[V any](all map[string]V, limit int, use func(V) (last uint64, isUsed bool)) []string {
	if len(all) <= limit {
		return nil
	}
	var names []string
	for name, v := range all {
		if _, isUsed := use(v); !isUsed {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := use(all[a])
		y, _ := use(all[b])
		return cmp.Compare(x, y)
	})
	return names[:min(len(names), len(all)-limit+limit/16)]
}
