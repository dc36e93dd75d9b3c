package advisor

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Job is what the log says of one job.
type Job struct {
	ID           string
	State        schemas.State
	Submitted    *schemas.Submitted // nil: it was started without a request
	Promise      *schemas.Advice    // that it may rely on: the answer to its request, or what ended its waiting; nil: none
	Setting      schemas.Setting    // of the last run
	Run          uint32
	Hardware     []schemas.Hardware // of its nodes, in their order
	User         string
	StartedAt    time.Time
	EndedAt      time.Time
	EpochsDone   uint32
	LongestEpoch time.Duration // of this run
	Accuracy     *float64
	Reason       string
	Advice       *schemas.Advice // the last one
	MetSLO       *bool
	Risk         *schemas.Risk // the last warning or all-clear

	began      uint32        // batch size that the last run began with
	changed    bool          // it has run with another one since
	laps       []lap         // the last epochs of this run
	mark       []tally       // of its nodes, when it started or ended its last epoch
	progressAt time.Time     // then, by the server's clock
	ioWait     float64       // of its node in its last epoch, 0 if nobody knows
	epochAt    time.Time     // when its last epoch ended
	behind     time.Duration // by which the clock of its runner is slow at least; it started before it was asked for

	first     uint64    // sequence of its first event: the order of job.list
	last      uint64    // sequence of its last event, advice left aside
	heard     time.Time // last sign of life, by this process's or the server's clock
	heartbeat bool      // it promised to say that it is alive
}

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

	described map[string]Description // of the models
}

// NewCluster returns the state before the first event.
func NewCluster() *Cluster {
	return &Cluster{jobs: map[string]*Job{}, running: map[string]*Job{}, nodes: map[string]*Node{}, fleet: schemas.Fleet{}, onNode: map[string][]*Job{}, held: map[string]*Job{}, tallies: tallies{}, tried: tried{}}
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
		c.fleet.Sample(e)
	case *schemas.Submitted:
		c.describe(e.Request.Model, Description{Parameters: e.Request.Parameters, TrainingSamples: e.Request.TrainingSamples})
		return c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.submitted(e) })
	case *schemas.Started:
		c.describe(e.Model, Description{TrainingSamples: e.TrainingSamples})
		j := c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.started(e, storedAt) })
		if j != nil {
			j.Hardware = c.fleet.See(e.Nodes, e.Hardware(), e.NodeCores)
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
		}
		return j
	case *schemas.Advice:
		if e.Action == schemas.ActionStart {
			return c.touch(e.JobID, sequence, e.At, storedAt, func(j *Job) bool { return j.admitted(e) })
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

func (j *Job) submitted(e *schemas.Submitted) bool {
	if j.Submitted != nil {
		return false
	}
	j.Submitted, j.User = e, e.Request.User
	if j.State != "" {
		return true
	}
	j.State, j.Advice = schemas.StateSubmitted, &e.Advice
	switch v := e.Advice.Admission; {
	case v != nil && v.Verdict == schemas.Refused:
		j.State, j.Reason = schemas.StateRefused, why(&e.Advice)
	case v != nil && v.Verdict == schemas.Queued:
		j.State, j.Reason = schemas.StateQueued, why(&e.Advice)
	default:
		j.Promise = &e.Advice
	}
	return true
}

// why is what a policy says in the message of an advice, without its figures.
func why(a *schemas.Advice) string {
	verdict, _, _ := strings.Cut(a.Message, ": ")
	return verdict
}

// admitted ends the waiting of a queued job.
func (j *Job) admitted(e *schemas.Advice) bool {
	if j.State != schemas.StateQueued {
		return false
	}
	j.State, j.Promise, j.Advice, j.Reason = schemas.StateSubmitted, e, e, ""
	return true
}

func (j *Job) started(e *schemas.Started, storedAt time.Time) bool {
	if e.Run <= j.Run {
		return false
	}
	j.begin(e.BatchSize)
	j.State, j.Run, j.Setting, j.heartbeat = schemas.StateRunning, e.Run, e.Setting, e.HeartbeatSeconds > 0
	j.behind = 0
	if j.Submitted != nil {
		j.behind = max(0, j.Submitted.At.Sub(e.At))
	}
	j.StartedAt, j.EndedAt, j.EpochsDone, j.LongestEpoch, j.Accuracy, j.Reason, j.MetSLO = j.happened(e.At, storedAt), time.Time{}, 0, 0, nil, "", nil
	if e.User != "" {
		j.User = e.User
	}
	return true
}

// begin notes the batch size that a run begins with.
func (j *Job) begin(batch uint32) { j.began, j.changed = batch, false }

func (j *Job) epoch(e *schemas.Epoch, storedAt time.Time) bool {
	if e.Run < j.Run || e.Run == j.Run && e.Epoch <= j.EpochsDone || j.over() && e.Run == j.Run {
		return false
	}
	if e.Run > j.Run {
		j.begin(e.BatchSize)
	}
	j.changed = j.changed || e.BatchSize != j.began
	if e.Run > j.Run || j.State != schemas.StateRunning { // its start was lost, or it is back from being lost
		j.State, j.Run, j.EndedAt, j.Reason = schemas.StateRunning, e.Run, time.Time{}, ""
	}
	if j.StartedAt.IsZero() {
		j.StartedAt = j.happened(e.At, storedAt).Add(-time.Duration(e.DurationSeconds * float64(time.Second)))
	}
	j.Setting, j.EpochsDone = e.Setting, e.Epoch
	j.LongestEpoch = max(j.LongestEpoch, time.Duration(e.DurationSeconds*float64(time.Second)))
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	return true
}

// happened is when something happened to a job, where the clock of its runner
// cannot be right: nothing starts before it was asked for, and nothing is stored
// before it happened. What is stored late, from a spool, keeps its own time.
func (j *Job) happened(at, storedAt time.Time) time.Time {
	if at = at.Add(j.behind); storedAt.Before(at) {
		return storedAt
	}
	return at
}

// over reports whether the run has ended for good; lost is not for good.
func (j *Job) over() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed || j.State == schemas.StateCancelled
}

func (j *Job) ended(e *schemas.Ended, storedAt time.Time) bool {
	switch {
	case e.Run < j.Run, j.over() && e.Run == j.Run:
		return false
	case e.Outcome == schemas.EventLost:
		if j.State != schemas.StateRunning {
			return false
		}
	case e.Outcome != schemas.EventCancelled:
		if e.Run > j.Run {
			j.begin(e.BatchSize)
		}
		j.Run, j.Setting = e.Run, e.Setting
		j.EpochsDone = max(j.EpochsDone, e.EpochsDone)
	}
	j.State, j.EndedAt, j.Reason = schemas.State(e.Outcome), j.happened(e.At, storedAt), e.Reason
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	if j.Submitted != nil && j.Submitted.Request.SLO > 0 && e.Outcome != schemas.EventLost {
		met := e.Outcome == schemas.EventFinished && !j.trainedAt().After(j.deadline())
		j.MetSLO = &met
	}
	return true
}

// deadline is submission plus SLO; zero without one.
func (j *Job) deadline() time.Time {
	if j.Submitted == nil || j.Submitted.Request.SLO == 0 {
		return time.Time{}
	}
	return j.Submitted.At.Add(time.Duration(j.Submitted.Request.SLO))
}

// trainedAt is when a job that ended was done: at the end of its last epoch,
// whatever it does afterwards; without one, at its end.
func (j *Job) trainedAt() time.Time {
	if j.epochAt.IsZero() || j.EpochsDone < j.Setting.Epochs {
		return j.EndedAt
	}
	return j.epochAt
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
