package advisor

import (
	"cmp"
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

// longAgo is how long after it happened an event is no sign of life: a past run
// that is imported, or a spool that was found again.
const longAgo = time.Hour

// Apply changes the state by an event that was stored at the given time. It
// returns the job that the event changed, nil if it changed none: copies and
// events of earlier runs change nothing.
func (c *Cluster) Apply(e schemas.Event, sequence uint64, storedAt time.Time) *Job {
	c.arrivals.expire(storedAt)
	defer c.forgetNames()
	switch e := e.(type) {
	case *schemas.Sample:
		c.sample(e, storedAt)
	case *schemas.Submitted:
		change := func(j *Job) bool { return j.submitted(e) }
		j := c.touch(e.JobID, sequence, e.At, storedAt, change)
		if j != nil {
			c.describe(schemas.ModelLevel(e.Request.Model, e.Request.Dataset), Description{
				Parameters:      e.Request.Parameters,
				TrainingSamples: e.Request.TrainingSamples,
			})
		}
		c.means.promise(j)
		return j
	case *schemas.Started:
		return c.started(e, sequence, storedAt)
	case *schemas.Epoch:
		return c.epoch(e, sequence, storedAt)
	case *schemas.Ended:
		return c.end(e, sequence, storedAt)
	case *schemas.JobAdmitted:
		return c.admit(&e.Advice, sequence, e.At, storedAt)
	case *schemas.Advice: // in JOB until it had a stream of its own, and admissions an event
		if e.Action == schemas.ActionStart {
			return c.admit(e, sequence, e.At, storedAt)
		}
		if j := c.jobs[e.JobID]; j != nil && (j.Advice == nil || e.CauseSequence >= j.Advice.CauseSequence) {
			j.Advice = lastAdvice(e)
		}
	case *schemas.Risk:
		if j := c.jobs[e.JobID]; j != nil && (j.Risk == nil || e.CauseSequence >= j.Risk.CauseSequence) {
			j.Risk = e
		}
	}
	return nil
}

// admit ends the waiting of a queued job. It returns nil if the job does not wait.
func (c *Cluster) admit(a *schemas.Advice, sequence uint64, at, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.admitted(a) }
	j := c.touch(a.JobID, sequence, at, storedAt, change)
	c.means.promise(j)
	return j
}

func (c *Cluster) sample(e *schemas.Sample, storedAt time.Time) {
	n := c.useNode(e.Node)
	n.Cores, n.Heard = e.Cores, storedAt
	before := c.fleet[e.Node]
	c.fleet.Sample(e)
	c.renew(e.Node, before)
	c.learnForeign(n, e, storedAt)
}

func (c *Cluster) started(e *schemas.Started, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.started(e, storedAt) }
	j := c.touch(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	j.usage = schemas.Usage{}
	c.describe(levelOf(&e.Setting), Description{TrainingSamples: e.TrainingSamples})
	c.useNodes(e.Nodes)
	before := c.fleet.Of(e.Nodes)
	j.Hardware = c.fleet.See(e.Nodes, e.Hardware(), e.NodeCores)
	for i, node := range e.Nodes {
		c.renew(node, before[i])
	}
	j.laps, j.mark = nil, c.tallies.snapshot(j.Setting.Nodes, storedAt)
	j.progressAt, j.epochAt = storedAt, time.Time{}
	return j
}

func (c *Cluster) epoch(e *schemas.Epoch, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.epoch(e, storedAt) }
	j := c.touch(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	level := levelOf(&e.Setting)
	c.describe(level, Description{ValidationSamples: e.ValidationSamples})
	c.useModel(level).add(&e.Setting)
	c.useNodes(e.Nodes)
	j.Hardware = c.fleet.See(e.Nodes, nil, e.NodeCores)
	c.lap(j, e, storedAt)
	return j
}

func (c *Cluster) end(e *schemas.Ended, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.ended(e, storedAt) }
	j := c.touch(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	if j.State == schemas.StateFinished && !j.changed {
		c.keep(j) // the time of a job that was moved was predicted for its first batch size
	}
	c.score.end(j)
	c.means.end(j)
	return j
}

// forgetNames drops the least recently used nodes and models beyond their limits.
func (c *Cluster) forgetNames() {
	c.forgetNodes()
	c.forgetModels()
}

func (c *Cluster) useNodes(names []string) {
	for _, name := range names {
		c.useNode(name)
	}
}

// touch finds or makes the job, changes it by what happened at a time and was
// stored at another, and keeps the indices.
func (c *Cluster) touch(id string, sequence uint64, at, storedAt time.Time, change func(*Job) bool) *Job {
	j, isKept := c.jobs[id]
	if !isKept {
		j = c.recalled(id, sequence)
	}
	before, was := j.Setting, j.State
	if !change(j) {
		return nil
	}
	if !isKept {
		c.insert(j)
	}
	if j.State == schemas.StateRunning && storedAt.Sub(j.happened(at, storedAt)) > longAgo {
		j.State = schemas.StateLost // until it is heard: it takes nobody's place, and needs no advice
	}
	c.score.back(j)
	c.occupy(j, &before, was == schemas.StateRunning, storedAt)
	c.hold(j, was, storedAt)
	c.file(j)
	c.abandon(storedAt)
	c.forgetJobs()
	j.last = max(j.last, sequence)
	if storedAt.After(j.heard) {
		j.heard = storedAt
	}
	return j
}

// occupy keeps the indices of the jobs on each node after a job has changed.
func (c *Cluster) occupy(j *Job, before *schemas.Setting, ran bool, at time.Time) {
	runs := j.State == schemas.StateRunning
	if runs == ran && before.CPUs == j.Setting.CPUs && slices.Equal(before.Nodes, j.Setting.Nodes) {
		return
	}
	if ran {
		c.leave(j, before.Nodes, at)
		c.tallies.change(before, -1, at)
	}
	if runs {
		c.enter(j, at)
		c.tallies.change(&j.Setting, 1, at)
	} else {
		j.mark = nil // the nodes are not counted for it any more
	}
	c.tallies.prune(before.Nodes)
}

// renew lets the jobs that run on a node, and their epochs so far, have what is known
// of it now, if that is not what it was before: the numbers are then those of an
// advisor that knew it from the start, as one that has just been started does.
func (c *Cluster) renew(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.nodes[node].running {
		j.Hardware, j.laps = slices.Clone(j.Hardware), slices.Clone(j.laps) // questions keep what they have
		for i, n := range j.Setting.Nodes {
			j.Hardware[i] = c.fleet.Complete(n, j.Hardware[i])
		}
		for i := range j.laps {
			l := &j.laps[i]
			l.load.on = c.fleet.Complete(l.node, l.load.on)
		}
	}
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
