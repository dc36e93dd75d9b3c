package advisor

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"courier/schemas"
)

// Cluster is the state of all jobs and nodes: a fold over the log. Its size depends on
// what is alive, not on the age of the log. It is not safe for concurrent use, except that
// several goroutines may read it at the same time.
type Cluster struct {
	limits limits

	jobs  map[string]*Job     // all but the packed ones
	past  map[string]*pastJob // ended long ago
	order jobList             // all, by first sequence
	ended jobList             // jobs that have ended lately, by when they did
	old   jobList             // packed jobs, by when they ended
	due   jobList             // submitted jobs that have not started, by when they are abandoned
	ends  uint64              // counts ends; the last place in ended

	running  map[string]*Job
	waiting  []*Job // in the queue, the most urgent first
	arrivals arrivals

	nodes     map[string]*Node
	idleNodes recency       // nodes without a running job
	fleet     schemas.Fleet // the hardware of nodes
	tallies   tallies       // of the nodes with running jobs

	models     map[string]*model // by level
	lastModels recency

	record       *Record     // how promises came out
	recordShared atomic.Bool // a question or a snapshot may have kept the record
	score        score       // the same, for people
	means        means       // the promises whose confidence is their mean
}

// limits bound the state.
type limits struct{ nodes, models, ended, whole int }

// NewCluster returns the state before the first event.
func NewCluster() *Cluster {
	return &Cluster{
		limits:     limits{nodes: mostNodes, models: mostModels, ended: keptJobs, whole: keptWhole},
		jobs:       map[string]*Job{},
		past:       map[string]*pastJob{},
		running:    map[string]*Job{},
		arrivals:   arrivals{onNode: map[string]*expectation{}},
		nodes:      map[string]*Node{},
		idleNodes:  newRecency(),
		fleet:      schemas.Fleet{},
		tallies:    tallies{},
		models:     map[string]*model{},
		lastModels: newRecency(),
		means:      means{},
	}
}

// job returns a job, nil if none is remembered. One that ended long ago is unpacked for
// the caller: changes to it are lost, and its answer is only in the log.
func (c *Cluster) job(id string) *Job {
	if j := c.jobs[id]; j != nil {
		return j
	}
	if p := c.past[id]; p != nil {
		return p.unpack()
	}
	return nil
}

// knows reports whether a job is remembered.
func (c *Cluster) knows(id string) bool { return c.jobs[id] != nil || c.past[id] != nil }

// indexOf returns where a job is in the order of all, -1 if it is not remembered.
func (c *Cluster) indexOf(id string) int {
	if j := c.jobs[id]; j != nil {
		return c.order.index(entry{key: j.first, job: j})
	}
	if p := c.past[id]; p != nil {
		return c.order.index(entry{key: p.first, past: p})
	}
	return -1
}

// newestFirst returns the jobs in a state, "" for all, the newest first, from behind a job
// on, or from the start. known is false if that job is not remembered.
func (c *Cluster) newestFirst(after string, state schemas.State) (jobs iter.Seq[*Job], known bool) {
	i := len(c.order.entries)
	if after != "" {
		if i = c.indexOf(after); i < 0 {
			return nil, false
		}
	}
	return func(yield func(*Job) bool) {
		for i--; i >= 0; i-- {
			e := &c.order.entries[i]
			if e.removed() || state != "" && e.state() != state {
				continue
			}
			if !yield(e.unpacked()) {
				return
			}
		}
	}, true
}

// unknownSilence is after how many SLOs, or after how long without one, a running job is
// lost of which nothing tells how long its epochs last.
const (
	unknownSilenceSLOs = 10
	unknownSilence     = 24 * time.Hour
)

// Silent returns the running jobs that are lost at now: after schemas.Silence
// without a sign of life of a job that promised one, else after three times the
// longest epoch that was seen or is predicted, and never sooner than that. Where neither
// is known, ten SLOs are the limit, or a day for a job without one.
func (c *Cluster) Silent(now time.Time) []*Job {
	c.arrivals.expire(now)
	var all []*Job
	for _, j := range c.running {
		if now.Sub(j.heard) > j.patience() {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// patience is how long a running job may be silent before it is lost.
func (j *Job) patience() time.Duration {
	if j.heartbeat {
		return schemas.Silence
	}
	if epoch := max(j.LongestEpoch, predictedEpoch(j.Advice)); epoch > 0 {
		return max(schemas.Silence, 3*epoch)
	}
	if j.Submitted != nil && j.Submitted.Request.SLO > 0 {
		return max(schemas.Silence, unknownSilenceSLOs*time.Duration(j.Submitted.Request.SLO))
	}
	return unknownSilence
}

// predictedEpoch returns the predicted epoch time of an advice, 0 if unknown.
func predictedEpoch(a *schemas.Advice) time.Duration {
	if a == nil || a.Chosen == nil || a.Chosen.PredictedSeconds == nil || a.Chosen.Epochs == 0 {
		return 0
	}
	return time.Duration(*a.Chosen.PredictedSeconds / float64(a.Chosen.Epochs) * float64(time.Second))
}
