package cluster

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Queue returns the queued jobs by deadline; jobs without a deadline come last, in the order of
// submission. The caller must not change the slice.
func (c *Cluster) Queue() []*Job { return c.waiting.all }

// QueuePosition returns the place of a job in the queue, from 1; 0 if it is not queued.
func (c *Cluster) QueuePosition(j *Job) uint32 {
	if at, found := c.waiting.index(j); found {
		return uint32(at) + 1
	}
	return 0
}

// QueuedFor returns the number of queued jobs that may run on one of some nodes: a job that would run there
// waits behind them. No nodes mean that they are unknown, and may be any.
func (c *Cluster) QueuedFor(nodes []string, now time.Time) (n int) {
	for _, j := range c.waiting.all {
		if c.MayUse(j.Request, nodes, now) {
			n++
		}
	}
	return n
}

// MayUse reports whether a request may run on one of some nodes.
func (c *Cluster) MayUse(q *schemas.JobRequest, nodes []string, now time.Time) bool {
	if len(nodes) == 0 {
		return true
	}
	return slices.ContainsFunc(nodes, func(name string) bool {
		n := c.nodes[name]
		return slices.Contains(q.Nodes, name) || len(q.Nodes) == 0 && (n == nil || n.mayPlace(q, now))
	})
}

// compareUrgency orders the queue. Its criteria do not change while a job is queued.
func compareUrgency(a, b *Job) int {
	x, y := a.Deadline(), b.Deadline()
	if x.IsZero() != y.IsZero() {
		if x.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(x.Compare(y), cmp.Compare(a.First, b.First), cmp.Compare(a.ID, b.ID))
}
