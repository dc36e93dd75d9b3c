package advisor

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Job is what the log says of one job.
type Job struct {
	ID           string
	State        schemas.State
	Submitted    *schemas.Submitted // nil: it was started without a request
	Setting      schemas.Setting    // of the last run
	Run          uint32
	Cores        uint32 // of its node
	User         string
	StartedAt    time.Time
	EndedAt      time.Time
	EpochsDone   uint32
	LongestEpoch time.Duration // of this run
	Accuracy     *float64
	Reason       string
	Advice       *schemas.Advice // the last one
	MetSLO       *bool

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
	tried   tried
}

// NewCluster returns the state before the first event.
func NewCluster() *Cluster {
	return &Cluster{jobs: map[string]*Job{}, running: map[string]*Job{}, nodes: map[string]*Node{}, tried: tried{}}
}

// keptJobs bounds how many jobs are remembered; the oldest that ended go first.
const keptJobs = 100_000

// Apply changes the state by an event that was stored at the given time. It
// returns the job that the event changed, nil if it changed none: copies and
// events of earlier runs change nothing.
func (c *Cluster) Apply(e schemas.Event, sequence uint64, storedAt time.Time) *Job {
	switch e := e.(type) {
	case *schemas.Sample:
		c.nodes[e.Node] = &Node{Name: e.Node, Cores: e.Cores, Heard: storedAt}
	case *schemas.Submitted:
		return c.touch(e.JobID, sequence, storedAt, func(j *Job) bool { return j.submitted(e) })
	case *schemas.Started:
		return c.touch(e.JobID, sequence, storedAt, func(j *Job) bool { return j.started(e) })
	case *schemas.Epoch:
		c.tried.add(&e.Setting)
		return c.touch(e.JobID, sequence, storedAt, func(j *Job) bool { return j.epoch(e) })
	case *schemas.Ended:
		return c.touch(e.JobID, sequence, storedAt, func(j *Job) bool { return j.ended(e) })
	case *schemas.Advice:
		if j := c.jobs[e.JobID]; j != nil && (j.Advice == nil || e.CauseSequence >= j.Advice.CauseSequence) {
			j.Advice = e
		}
	}
	return nil
}

// touch finds or makes the job, changes it, and keeps the indices.
func (c *Cluster) touch(id string, sequence uint64, storedAt time.Time, change func(*Job) bool) *Job {
	j := c.jobs[id]
	if j == nil {
		j = &Job{ID: id, first: sequence}
		c.insert(j)
	}
	if !change(j) {
		return nil
	}
	j.last = max(j.last, sequence)
	if storedAt.After(j.heard) {
		j.heard = storedAt
	}
	if j.State == schemas.StateRunning {
		c.running[id] = j
	} else {
		delete(c.running, id)
	}
	return j
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
	if j.State == "" {
		j.State, j.Advice = schemas.StateSubmitted, &e.Advice
	}
	return true
}

func (j *Job) started(e *schemas.Started) bool {
	if e.Run <= j.Run {
		return false
	}
	j.State, j.Run, j.Setting, j.Cores, j.heartbeat = schemas.StateRunning, e.Run, e.Setting, e.NodeCores, e.HeartbeatSeconds > 0
	j.StartedAt, j.EndedAt, j.EpochsDone, j.LongestEpoch, j.Accuracy, j.Reason, j.MetSLO = e.At, time.Time{}, 0, 0, nil, "", nil
	if e.User != "" {
		j.User = e.User
	}
	return true
}

func (j *Job) epoch(e *schemas.Epoch) bool {
	if e.Run < j.Run || e.Run == j.Run && e.Epoch <= j.EpochsDone || j.over() && e.Run == j.Run {
		return false
	}
	if e.Run > j.Run || j.State != schemas.StateRunning { // its start was lost, or it is back from being lost
		j.State, j.Run, j.EndedAt, j.Reason = schemas.StateRunning, e.Run, time.Time{}, ""
	}
	if j.StartedAt.IsZero() {
		j.StartedAt = e.At.Add(-time.Duration(e.DurationSeconds * float64(time.Second)))
	}
	j.Setting, j.EpochsDone, j.Cores = e.Setting, e.Epoch, e.NodeCores
	j.LongestEpoch = max(j.LongestEpoch, time.Duration(e.DurationSeconds*float64(time.Second)))
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	return true
}

// over reports whether the run has ended for good; lost is not for good.
func (j *Job) over() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed || j.State == schemas.StateCancelled
}

func (j *Job) ended(e *schemas.Ended) bool {
	switch {
	case e.Run < j.Run, j.over() && e.Run == j.Run:
		return false
	case e.Outcome == schemas.EventLost:
		if j.State != schemas.StateRunning {
			return false
		}
	case e.Outcome != schemas.EventCancelled:
		j.Run, j.Setting = e.Run, e.Setting
		j.EpochsDone = max(j.EpochsDone, e.EpochsDone)
	}
	j.State, j.EndedAt, j.Reason = schemas.State(e.Outcome), e.At, e.Reason
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	if j.Submitted != nil && j.Submitted.Request.SLO > 0 && e.Outcome != schemas.EventLost {
		met := e.Outcome == schemas.EventFinished && !e.At.After(j.deadline())
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

// span is the job as it loads its nodes.
func (j *Job) span() schemas.Span {
	return schemas.Span{JobID: j.ID, Nodes: j.Setting.Nodes, CPUs: j.Setting.CPUs, From: j.StartedAt}
}

// spans returns the running jobs on any of the nodes.
func (c *Cluster) spans(nodes []string) []schemas.Span {
	var all []schemas.Span
	for _, j := range c.running {
		if sharesNode(j.Setting.Nodes, nodes) {
			all = append(all, j.span())
		}
	}
	slices.SortFunc(all, func(a, b schemas.Span) int { return cmp.Compare(a.JobID, b.JobID) })
	return all
}

func sharesNode(a, b []string) bool {
	return slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) })
}

// beside returns the running jobs on any of the nodes, but for one, by ID.
func (c *Cluster) beside(nodes []string, but string) []*Job {
	var all []*Job
	for _, j := range c.running {
		if j.ID != but && sharesNode(j.Setting.Nodes, nodes) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// place returns the nodes of a request and the processors of the smallest: those
// that it names, else the live node with the fewest processes per processor that
// has room for the fewest CPUs asked for; none if no node is known.
func (c *Cluster) place(q *schemas.JobRequest, now time.Time) (nodes []string, cores uint32) {
	if len(q.Nodes) > 0 {
		for _, name := range q.Nodes {
			if n := c.nodes[name]; n != nil && (cores == 0 || n.Cores < cores) {
				cores = n.Cores
			}
		}
		return q.Nodes, cores
	}
	var best *Node
	var least float64
	for _, n := range c.nodes {
		if now.Sub(n.Heard) > nodeSilence || int(n.Cores) < slices.Min(q.CPUs) {
			continue
		}
		load := schemas.LoadNow(schemas.Span{Nodes: []string{n.Name}}, c.spans([]string{n.Name}), n.Cores).ProcessesPerCore
		if best == nil || load < least || load == least && n.Name < best.Name {
			best, least = n, load
		}
	}
	if best == nil {
		return nil, 0
	}
	return []string{best.Name}, best.Cores
}

// Ask makes the question of a request that comes now.
func (c *Cluster) Ask(q schemas.JobRequest, now time.Time) *Question {
	nodes, cores := c.place(&q, now)
	question := &Question{Request: q, JobID: q.JobID, Nodes: nodes, Cores: cores, Spans: c.spans(nodes), Tried: c.tried[q.Model]}
	for _, j := range c.beside(nodes, q.JobID) {
		n := Neighbour{JobID: j.ID, Setting: j.Setting, Cores: j.Cores, EpochsLeft: j.Setting.Epochs - min(j.Setting.Epochs, j.EpochsDone)}
		if d := j.deadline(); !d.IsZero() {
			n.Left = d.Sub(now)
		}
		question.Others = append(question.Others, n)
	}
	return question
}

// Again makes the question of a job that runs.
func (c *Cluster) Again(j *Job, now time.Time) *Question {
	q := schemas.JobRequest{JobID: j.ID, Model: j.Setting.Model, Epochs: int(j.Setting.Epochs), Confidence: schemas.DefaultConfidence}
	elapsed := now.Sub(j.StartedAt)
	if j.Submitted != nil {
		q = j.Submitted.Request
		elapsed = now.Sub(j.Submitted.At)
	}
	if !slices.Contains(q.BatchSizes, int(j.Setting.BatchSize)) {
		q.BatchSizes = append([]int{int(j.Setting.BatchSize)}, q.BatchSizes...)
	}
	q = q.WithDefaults()
	q.CPUs, q.Epochs = schemas.CPUs{int(j.Setting.CPUs)}, max(int(j.Setting.Epochs), int(j.EpochsDone))
	return &Question{Request: q, JobID: j.ID, Run: j.Run, Nodes: j.Setting.Nodes, Cores: j.Cores, EpochsDone: j.EpochsDone,
		Elapsed: max(0, elapsed), Running: j.Setting, Spans: c.spans(j.Setting.Nodes)}
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
