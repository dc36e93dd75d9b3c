package advisor

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Node is what the last sample says of a node.
type Node struct {
	Name  string
	Cores uint32
	Heard time.Time // by the server's clock
}

// nodeSilence is how long after its last sample a node is no place for a job.
const nodeSilence = 30 * time.Second

// Cluster is the state of all jobs and nodes: a fold over the log. It is not
// safe for concurrent use.
type Cluster struct {
	jobs    map[string]*Job
	order   []*Job // by first sequence
	running map[string]*Job
	nodes   map[string]*Node
	fleet   schemas.Fleet     // what was told of the hardware of nodes
	onNode  map[string][]*Job // running jobs, by ID
	held    map[string]*Job   // not started, and known to an admission policy: queued or admitted
	tallies tallies
	tried   tried
	record  *Record // how promises came out
	score   score   // the same, for people
	means   means   // the promises whose confidence is their mean

	described map[string]Description // of the models
}

// NewCluster returns the state before the first event.
func NewCluster() *Cluster {
	return &Cluster{jobs: map[string]*Job{}, running: map[string]*Job{}, nodes: map[string]*Node{}, fleet: schemas.Fleet{}, onNode: map[string][]*Job{}, held: map[string]*Job{}, tallies: tallies{}, tried: tried{}, means: means{}}
}

// keptJobs bounds how many jobs are remembered; the oldest that ended go first.
const keptJobs = 100_000

// longAgo is how long after it happened an event is no sign of life: a past run
// that is imported, or a spool that was found again.
const longAgo = time.Hour

// Apply changes the state by an event that was stored at the given time. It
// returns the job that the event changed, nil if it changed none: copies and
// events of earlier runs change nothing.
func (c *Cluster) Apply(e schemas.Event, sequence uint64, storedAt time.Time) *Job {
	switch e := e.(type) {
	case *schemas.Sample:
		c.nodes[e.Node] = &Node{Name: e.Node, Cores: e.Cores, Heard: storedAt}
		before := c.fleet[e.Node]
		c.fleet.Sample(e)
		c.renew(e.Node, before)
	case *schemas.Submitted:
		c.describe(e.Request.Model, Description{Parameters: e.Request.Parameters, TrainingSamples: e.Request.TrainingSamples})
		j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.submitted(e) })
		c.means.promise(j)
		return j
	case *schemas.Started:
		c.describe(e.Model, Description{TrainingSamples: e.TrainingSamples})
		j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.started(e, storedAt) })
		if j != nil {
			before := c.fleet.Of(e.Nodes)
			j.Hardware = c.fleet.See(e.Nodes, e.Hardware(), e.NodeCores)
			for i, node := range e.Nodes {
				c.renew(node, before[i])
			}
			j.laps, j.mark, j.progressAt, j.epochAt = nil, c.tallies.snapshot(j.Setting.Nodes, storedAt), storedAt, time.Time{}
		}
		return j
	case *schemas.Epoch:
		c.describe(e.Model, Description{ValidationSamples: e.ValidationSamples})
		c.tried.add(&e.Setting)
		j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.epoch(e, storedAt) })
		if j != nil {
			j.Hardware = c.fleet.See(e.Nodes, nil, e.NodeCores)
			c.lap(j, e, storedAt)
		}
		return j
	case *schemas.Ended:
		j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.ended(e, storedAt) })
		if j != nil && j.State == schemas.StateFinished && !j.changed {
			c.keep(j) // a job that was moved says nothing of what was predicted for one that is not
		}
		if j != nil {
			c.score.end(j)
			c.means.end(j)
		}
		return j
	case *schemas.Advice:
		if e.Action == schemas.ActionStart {
			j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.admitted(e) })
			c.means.promise(j)
			return j
		}
		if j := c.jobs[e.JobID]; j != nil && (j.Advice == nil || e.CauseSequence >= j.Advice.CauseSequence) {
			j.Advice = e
		}
	case *schemas.Risk:
		if j := c.jobs[e.JobID]; j != nil && (j.Risk == nil || e.CauseSequence >= j.Risk.CauseSequence) {
			j.Risk = e
		}
	}
	return nil
}

// touch finds or makes the job, changes it by what happened at a time and was
// stored at another, and keeps the indices.
func (c *Cluster) touch(id string, sequence uint64, at, storedAt time.Time, change func(*Job) bool) *Job {
	j := c.jobs[id]
	if j == nil {
		j = &Job{ID: id, first: sequence}
		c.insert(j)
	}
	before, ran := j.Setting, j.State == schemas.StateRunning
	if !change(j) {
		return nil
	}
	if j.State == schemas.StateRunning && storedAt.Sub(j.happened(at, storedAt)) > longAgo {
		j.State = schemas.StateLost // until it is heard: it takes nobody's place, and needs no advice
	}
	c.occupy(j, &before, ran, storedAt)
	c.hold(j)
	j.last = max(j.last, sequence)
	if storedAt.After(j.heard) {
		j.heard = storedAt
	}
	return j
}

// occupy keeps the indices of who runs where after a job has changed.
func (c *Cluster) occupy(j *Job, before *schemas.Setting, ran bool, at time.Time) {
	runs := j.State == schemas.StateRunning
	if runs == ran && before.CPUs == j.Setting.CPUs && slices.Equal(before.Nodes, j.Setting.Nodes) {
		return
	}
	if ran {
		delete(c.running, j.ID)
		c.tallies.change(before, -1, at)
		for _, n := range before.Nodes {
			c.onNode[n] = slices.DeleteFunc(c.onNode[n], func(o *Job) bool { return o == j })
		}
	}
	if runs {
		c.running[j.ID] = j
		c.tallies.change(&j.Setting, 1, at)
		for _, n := range j.Setting.Nodes {
			i, _ := slices.BinarySearchFunc(c.onNode[n], j.ID, func(o *Job, id string) int { return cmp.Compare(o.ID, id) })
			c.onNode[n] = slices.Insert(c.onNode[n], i, j)
		}
	}
}

// renew lets the jobs that run on a node, and their epochs so far, have what is known
// of it now, if that is not what it was before: the numbers are then those of an
// advisor that knew it from the start, as one that has just been started does.
func (c *Cluster) renew(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.onNode[node] {
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

// insert keeps order sorted: a submit that this process recorded may be applied
// before an older event arrives.
func (c *Cluster) insert(j *Job) {
	c.jobs[j.ID] = j
	at, _ := slices.BinarySearchFunc(c.order, j.first, func(o *Job, first uint64) int { return cmp.Compare(o.first, first) })
	c.order = slices.Insert(c.order, at, j)
	if len(c.order) <= keptJobs {
		return
	}
	for i, old := range c.order {
		if old.State != schemas.StateRunning {
			delete(c.jobs, old.ID)
			c.order = slices.Delete(c.order, i, i+1)
			return
		}
	}
}

// beside returns the running jobs that share a node with the given ones, or with
// a job that does, but for one, by ID; those that are about to start count.
func (c *Cluster) beside(nodes []string, but string, now time.Time) []*Job {
	var all []*Job
	seen := slices.Clone(nodes)
	add := func(j *Job, nodes []string) {
		if j.ID == but || slices.Contains(all, j) {
			return
		}
		all = append(all, j)
		for _, n := range nodes {
			if !slices.Contains(seen, n) {
				seen = append(seen, n)
			}
		}
	}
	for i := 0; i < len(seen); i++ {
		for _, j := range c.onNode[seen[i]] {
			add(j, j.Setting.Nodes)
		}
		for _, j := range c.held {
			if j.expected(now) && slices.Contains(j.Promise.Nodes, seen[i]) {
				add(j, j.Promise.Nodes)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// place returns the nodes of a request: those that it names, else the live node
// with the fewest processes per processor that has room for the fewest CPUs asked
// for; none if no node is known.
func (c *Cluster) place(q *schemas.JobRequest, now time.Time) []string {
	if len(q.Nodes) > 0 {
		return q.Nodes
	}
	var best *Node
	var least float64
	for _, n := range c.nodes {
		if now.Sub(n.Heard) > nodeSilence || int(n.Cores) < slices.Min(q.CPUs) {
			continue
		}
		load := 0.0
		if t := c.tallies[n.Name]; t != nil {
			load = t.procs
		}
		for _, j := range c.held {
			if j.expected(now) && slices.Contains(j.Promise.Nodes, n.Name) {
				load += float64(j.Promise.Chosen.CPUs)
			}
		}
		load /= float64(n.Cores)
		if best == nil || load < least || load == least && n.Name < best.Name {
			best, least = n, load
		}
	}
	if best == nil {
		return nil
	}
	return []string{best.Name}
}

// Silent returns the running jobs that are lost at now: after schemas.Silence
// without a sign of life of a job that promised one, else after three times the
// longest epoch that was seen or is predicted, and never sooner than that.
func (c *Cluster) Silent(now time.Time) []*Job {
	var all []*Job
	for _, j := range c.running {
		limit := schemas.Silence
		if !j.heartbeat {
			epoch := max(j.LongestEpoch, predictedEpoch(j.Advice))
			if epoch == 0 {
				continue // nothing tells how long its epochs last
			}
			limit = max(limit, 3*epoch)
		}
		if now.Sub(j.heard) > limit {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// predictedEpoch returns the predicted epoch time of an advice, 0 if unknown.
func predictedEpoch(a *schemas.Advice) time.Duration {
	if a == nil || a.Chosen == nil || a.Chosen.PredictedSeconds == nil || a.Chosen.Epochs == 0 {
		return 0
	}
	return time.Duration(*a.Chosen.PredictedSeconds / float64(a.Chosen.Epochs) * float64(time.Second))
}
