package cluster

import (
	"time"

	"courier/schemas"
)

// updateEndedLists updates the list of ended jobs and the list of submitted jobs that may expire.
func (c *Cluster) updateEndedLists(j *Job) {
	submitted := j.State == schemas.StateSubmitted
	if j.Expiry > 0 && !submitted {
		c.unstarted.remove(j)
		j.Expiry = 0
	}
	if j.EndOrder > 0 && j.IsPending() {
		c.ended.remove(j)
		j.EndOrder = 0
	}
	switch {
	case submitted && j.Expiry == 0 && j.EndOrder == 0:
		j.Expiry = uint64(j.unstartedExpiry().UnixNano())
		c.unstarted.add(j)
	case !j.IsPending() && j.EndOrder == 0:
		c.addEnded(j)
	}
}

// addEnded appends the job to the list of ended jobs.
func (c *Cluster) addEnded(j *Job) {
	c.ends++
	j.EndOrder = c.ends
	c.ended.add(j)
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
	for len(c.unstarted.all) > 0 && int64(c.unstarted.all[0].Expiry) <= now.UnixNano() {
		j := c.unstarted.all[0]
		c.unstarted.remove(j)
		j.Expiry = 0
		c.addEnded(j)
	}
}

// packEndedJobs packs the jobs that ended first, and drops the packed jobs beyond the limit.
func (c *Cluster) packEndedJobs() {
	for len(c.ended.all)-len(c.packed) > c.limits.unpacked {
		p := c.ended.all[len(c.packed)].unpacked().pack()
		delete(c.jobs, p.ID)
		c.packed[p.ID] = p
		c.ended.replace(p)
		c.order.replace(p)
	}
	for len(c.packed) > 0 && len(c.ended.all) > c.limits.ended {
		p := c.ended.all[0]
		delete(c.packed, p.key().ID)
		c.ended.remove(p)
		c.order.remove(p)
	}
}

// evictNames evicts the least recently used idle nodes, and models, beyond their limits.
func (c *Cluster) evictNames() {
	for len(c.nodes) > c.limits.nodes && c.idleNodes.order.Len() > 0 {
		name := c.idleNodes.removeOldest()
		delete(c.nodes, name)
		delete(c.fleet, name)
	}
	for len(c.models) > c.limits.models {
		delete(c.models, c.lastModels.removeOldest())
	}
}
