package cluster

import (
	"cmp"
	"slices"
)

// Queue returns the queued jobs by deadline; jobs without a deadline come last, in the order of
// submission. The caller must not change the slice.
func (c *Cluster) Queue() []*Job { return c.waiting }

func (c *Cluster) enqueue(j *Job) {
	at, _ := slices.BinarySearchFunc(c.waiting, j, compareUrgency)
	c.waiting = slices.Insert(c.waiting, at, j)
}

func (c *Cluster) dequeue(j *Job) {
	if at, found := slices.BinarySearchFunc(c.waiting, j, compareUrgency); found {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	}
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
