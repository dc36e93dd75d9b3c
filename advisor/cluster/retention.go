package cluster

import (
	"time"

	"courier/schemas"
)

// updateEndedLists updates the list of ended jobs and the list of submitted jobs that may expire.
func (c *Cluster) updateEndedLists(j *Job) {
	submitted := j.State == schemas.StateSubmitted
	if j.Expiry > 0 && !submitted {
		c.unstarted.remove(j.expiryEntry())
		j.Expiry = 0
	}
	if j.EndOrder > 0 && !j.hasEnded() {
		c.ended.remove(listEntry{key: j.EndOrder, job: j})
		j.EndOrder = 0
	}
	switch {
	case submitted && j.Expiry == 0 && j.EndOrder == 0:
		j.Expiry = uint64(j.unstartedExpiry().UnixNano())
		c.unstarted.add(j.expiryEntry())
	case j.hasEnded() && j.EndOrder == 0:
		c.addEnded(j)
	}
}

// addEnded appends the job to the list of ended jobs.
func (c *Cluster) addEnded(j *Job) {
	c.ends++
	j.EndOrder = c.ends
	c.ended.add(listEntry{key: j.EndOrder, job: j})
}

// A submitted job that has not started expires: it is treated like an ended job, but stays
// submitted and may still be started. The time begins with its promise.
const (
	expirySLOs       = 10                  // after this many times its SLO
	minExpiry        = 24 * time.Hour      // and not before this
	expiryWithoutSLO = 30 * 24 * time.Hour // for a job without an SLO
)

// unstartedExpiry returns when the job expires if it does not start. The time begins with the
// promise, because the job may have been queued before.
func (j *Job) unstartedExpiry() time.Time {
	if j.HasDeadline() {
		slo := min(time.Duration(j.Request.SLO), schemas.MaxSLO)
		return j.Promise.At.Add(max(minExpiry, slo*expirySLOs))
	}
	return j.Promise.At.Add(expiryWithoutSLO)
}

// expireUnstarted adds the submitted jobs that were not started in time to the ended jobs.
func (c *Cluster) expireUnstarted(now time.Time) {
	for {
		e, ok := c.unstarted.first()
		if !ok || int64(e.key) > now.UnixNano() {
			return
		}
		c.unstarted.remove(e)
		e.job.Expiry = 0
		c.addEnded(e.job)
	}
}

// packEndedJobs packs the jobs that ended first, and drops the packed jobs beyond the limit.
func (c *Cluster) packEndedJobs() {
	for c.ended.count > c.limits.unpacked {
		e, _ := c.ended.first()
		c.ended.remove(e)
		p := e.job.pack()
		delete(c.jobs, p.ID)
		c.packed[p.ID] = p
		c.order.replace(e.job.orderEntry(), p.orderEntry())
		c.packedByEnd.add(listEntry{key: p.EndOrder, packed: p})
	}
	for c.packedByEnd.count > max(0, c.limits.ended-c.limits.unpacked) {
		e, _ := c.packedByEnd.first()
		c.packedByEnd.remove(e)
		delete(c.packed, e.packed.ID)
		c.order.remove(e.packed.orderEntry())
	}
}

// evictNames evicts the least recently used nodes and models beyond their limits.
func (c *Cluster) evictNames() {
	c.evictNodes()
	c.evictModels()
}

// evictNodes evicts the least recently used idle nodes beyond the limit.
func (c *Cluster) evictNodes() {
	for len(c.nodes) > c.limits.nodes {
		name, ok := c.idleNodes.oldest()
		if !ok {
			return
		}
		c.idleNodes.remove(name)
		delete(c.nodes, name)
		delete(c.fleet, name)
	}
}

// evictModels evicts the least recently used models beyond the limit.
func (c *Cluster) evictModels() {
	for len(c.models) > c.limits.models {
		name, ok := c.lastModels.oldest()
		if !ok {
			return
		}
		c.lastModels.remove(name)
		delete(c.models, name)
	}
}
