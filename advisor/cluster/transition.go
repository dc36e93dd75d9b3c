package cluster

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// longAgo is the delay between an event and its storage after which the event does not prove that
// its job is still running. Such an event comes from an imported run, or from a spool that was
// published late.
const longAgo = time.Hour

// Apply changes the state by an event that the stream stored at the given time. It returns the job
// that the event changed, or nil. Duplicates and events of earlier runs change nothing.
//
// Each kind of event calls applyToJob with the transition of the job, which is in job_transition.go,
// and then updates all other state that depends on the event.
func (c *Cluster) Apply(e schemas.Event, sequence uint64, storedAt time.Time) *Job {
	names := len(c.nodes) + len(c.models)
	defer func() {
		if len(c.nodes)+len(c.models) > names {
			c.evictNames()
		}
	}()
	switch e := e.(type) {
	case *schemas.Sample:
		c.sample(e, storedAt)
	case *schemas.Submitted:
		change := func(j *Job) bool { return j.submitted(e) }
		return c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	case *schemas.Started:
		return c.started(e, sequence, storedAt)
	case *schemas.Epoch:
		return c.epoch(e, sequence, storedAt)
	case *schemas.Ended:
		return c.end(e, sequence, storedAt)
	case *schemas.Moved:
		change := func(j *Job) bool { return j.moved(e, storedAt) }
		return c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	case *schemas.JobAdmitted:
		change := func(j *Job) bool { return j.admitted(&e.Advice) }
		return c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	case *schemas.Advice: // an advisor does not read it again, but a replay of the log does
		j := c.jobs[e.JobID]
		if j != nil && !j.IsSettled() && (j.Advice == nil || e.CauseSequence >= j.Advice.CauseSequence) {
			j.Advice = Summarize(e)
		}
	case *schemas.Risk:
		j := c.jobs[e.JobID]
		if j == nil || j.IsSettled() {
			return nil
		}
		last := &j.Risk
		if e.Cause == schemas.CauseDiverging {
			last = &j.Divergence
		}
		if *last == nil || e.CauseSequence >= (*last).CauseSequence {
			*last = e
		}
	}
	return nil
}

// started begins a run, and records the hardware of its nodes.
func (c *Cluster) started(e *schemas.Started, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.started(e, storedAt) }
	j := c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	j.Usage = schemas.Usage{}
	if j.Request != nil && j.Request.HasUnknownBatchSize() && e.BatchSize == 0 {
		j.Setting.BatchSize = c.Model(j.Request).OwnBatchSize // until its first epoch
	}
	c.useNodes(e.Nodes)
	before := c.fleet.Of(e.Nodes)
	j.Hardware = c.fleet.See(e.Nodes, e.Hardware(), e.NodeCores)
	for i, node := range e.Nodes {
		c.refreshHardware(node, before[i])
	}
	j.ObservedEpochs, j.LoadAtLastEpoch = nil, c.loadIntegrals(j.Setting.Nodes, storedAt)
	j.ProgressAt, j.LastEpochAt = storedAt, time.Time{}
	return j
}

// epoch records an epoch: the configuration that was tried, and the load during the epoch.
func (c *Cluster) epoch(e *schemas.Epoch, sequence uint64, storedAt time.Time) *Job {
	count := uint32(1) // of epochs that the event covers; a run may continue from a checkpoint
	change := func(j *Job) bool {
		if e.Run == j.Run && j.EpochsDone > 0 && j.EpochsDone < e.Epoch {
			count = e.Epoch - j.EpochsDone
		}
		return j.epoch(e, storedAt)
	}
	j := c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	m := c.useModel(levelOf(&e.Setting))
	m.add(&e.Setting)
	if j.Request != nil && j.Request.HasUnknownBatchSize() {
		m.OwnBatchSize = e.BatchSize
	}
	if j.Request != nil && len(j.Request.Loaders) > 1 {
		m.OwnLoaders = &e.Loaders
	}
	c.useNodes(e.Nodes)
	j.Hardware = c.fleet.See(e.Nodes, nil, e.NodeCores)
	c.observeEpoch(j, e, count, storedAt)
	if j.Together == j.EpochsDone && !j.EpochsFollow {
		m.FirstReport = j.Together
	}
	return j
}

// end ends a run.
func (c *Cluster) end(e *schemas.Ended, sequence uint64, storedAt time.Time) *Job {
	var hold Hold
	var nodes []string
	change := func(j *Job) bool {
		j.MayStopEarly = c.mayStopEarly(j, e)
		hold, nodes = holdOf(j, e, storedAt)
		return j.ended(e, storedAt)
	}
	j := c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	for _, name := range nodes {
		c.useNode(name).hold(hold, storedAt)
	}
	m := c.useModel(levelOf(&j.Setting))
	m.stopped(j)
	nodeType := ""
	if len(j.Hardware) > 0 {
		nodeType = j.Hardware[0].NodeType()
	}
	m.ended(batchAndShape(&j.Setting), nodeType, e)
	if j.IsOver() {
		j.dropProgress()
	}
	return j
}

// mayStopEarly reports whether a job may end with fewer epochs: its answer allows that, or it has
// reached its target accuracy. For a job that was not submitted, earlier jobs of the model decide.
func (c *Cluster) mayStopEarly(j *Job, e *schemas.Ended) bool {
	if j.Request != nil {
		return j.MayStopEarly || j.reaches(cmp.Or(e.Accuracy, j.Accuracy))
	}
	m := c.models[levelOf(&j.Setting)]
	return m != nil && m.StopsEarly()
}

// applyToJob finds or creates the job, applies the change, and updates the indices. It returns nil
// if change reports that nothing changed. at is the time of the event, storedAt the time at which
// the stream stored it.
func (c *Cluster) applyToJob(id string, sequence uint64, at, storedAt time.Time, change func(*Job) bool) *Job {
	known := c.jobs[id]
	j := known
	switch {
	case known == nil:
		j = newJob(id, sequence, at, storedAt)
	case known.IsSettled():
		j = new(*known)
	}
	before, previous := j.Setting, j.State

	if !change(j) {
		return nil
	}
	if j != known {
		c.insert(j)
	}
	if j.State == schemas.StateRunning && storedAt.Sub(j.correctedTime(at, storedAt)) > longAgo {
		j.State = schemas.StateLost // it uses no node and needs no advice until its next event
	}

	if !j.IsPending() {
		j.Answer = nil // a repeated request reads it from the log
	}
	if j.State != schemas.StateSubmitted {
		j.Admission = nil // only the advice of a job that has not started is published again
	}
	c.updateNodes(j, &before, previous == schemas.StateRunning, storedAt)
	c.updateQueue(j, previous, storedAt)
	c.updateEnded(j, storedAt)
	c.expireArrivals(storedAt)
	c.dropEnded()

	j.Last = max(j.Last, sequence)
	if storedAt.After(j.LastSeen) {
		j.LastSeen = storedAt
	}
	return j
}

// newJob returns a job, which is not part of the state until insert.
func newJob(id string, sequence uint64, at, storedAt time.Time) *Job {
	if at.After(storedAt) {
		at = storedAt
	}
	return &Job{ID: id, First: sequence, ListedAt: uint64(max(0, at.UnixMilli()))}
}

// insert adds a new job, or replaces a settled one by its copy. The list is ordered by time, because
// imported jobs are older than their events in the stream.
func (c *Cluster) insert(j *Job) {
	c.order.put(j)
	if j.EndOrder > 0 {
		c.ended.put(j)
	}
	c.jobs[j.ID] = j
}

// updateNodes updates the jobs and the load of each node after a job has changed.
func (c *Cluster) updateNodes(j *Job, before *schemas.Setting, ran bool, at time.Time) {
	runs := j.State == schemas.StateRunning
	if runs == ran && before.Processes() == j.Setting.Processes() && slices.Equal(before.Nodes, j.Setting.Nodes) {
		return
	}
	if ran {
		c.removeFromNodes(j, before, at)
	}
	if runs {
		c.addToNodes(j, at)
	} else {
		j.LoadAtLastEpoch = nil // the load integrals of its nodes may begin again
	}
	for _, name := range before.Nodes {
		if n := c.nodes[name]; n != nil && len(n.Running) == 0 {
			n.Load = LoadIntegral{Node: name}
		}
	}
}

// updateQueue updates the queue and the arrivals after the state of a job has changed.
func (c *Cluster) updateQueue(j *Job, previous schemas.State, now time.Time) {
	if previous == j.State {
		return
	}
	switch previous {
	case schemas.StateQueued:
		c.waiting.remove(j)
	case schemas.StateSubmitted:
		if j.Promise != nil {
			c.arrivals.remove(j)
		}
	}
	switch {
	case j.State == schemas.StateQueued:
		c.waiting.put(j)
	case j.IsExpected(now):
		c.arrivals.add(j)
	}
}
