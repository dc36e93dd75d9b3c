package cluster

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/policy"
	"courier/schemas"
)

// longAgo is the delay between an event and its storage after which the event does not prove that
// its job is still running. Such an event comes from an imported run, or from a spool that was
// published late.
const longAgo = time.Hour

// Apply changes the state by an event that the stream stored at the given time. It returns the job
// that the event changed, or nil. Duplicates and events of earlier runs change nothing.
//
// All state transitions of a job are in this file. Each kind of event calls applyToJob with the
// transition of the job, and then updates all other state that depends on the event.
func (c *Cluster) Apply(e schemas.Event, sequence uint64, storedAt time.Time) *Job {
	c.arrivals.expire(storedAt)
	defer c.evictNames()
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
		return c.admit(&e.Advice, sequence, e.At, storedAt)
	case *schemas.Advice: // an advisor does not read it again, but a replay of the log does
		j := c.jobs[e.JobID]
		if j != nil && (j.Advice == nil || e.CauseSequence >= j.Advice.CauseSequence) {
			j.Advice = Summarize(e)
		}
	case *schemas.Risk:
		j := c.jobs[e.JobID]
		if j == nil {
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

// admit moves a queued job to submitted. It returns nil if the job is not queued.
func (c *Cluster) admit(a *schemas.Advice, sequence uint64, at, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.admitted(a) }
	return c.applyToJob(a.JobID, sequence, at, storedAt, change)
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
	j.ObservedEpochs, j.LoadAtLastEpoch = nil, c.loadIntegrals.snapshot(j.Setting.Nodes, storedAt)
	j.ProgressAt, j.LastEpochAt = storedAt, time.Time{}
	return j
}

// epoch records an epoch: the configuration that was tried, and the load during the epoch.
func (c *Cluster) epoch(e *schemas.Epoch, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool { return j.epoch(e, storedAt) }
	j := c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	m := c.useModel(levelOf(&e.Setting))
	m.add(&e.Setting)
	if j.Request != nil && j.Request.HasUnknownBatchSize() {
		m.OwnBatchSize = e.BatchSize
	}
	c.useNodes(e.Nodes)
	j.Hardware = c.fleet.See(e.Nodes, nil, e.NodeCores)
	c.observeEpoch(j, e, storedAt)
	return j
}

// end ends a run, and adds its outcome to the score.
func (c *Cluster) end(e *schemas.Ended, sequence uint64, storedAt time.Time) *Job {
	change := func(j *Job) bool {
		j.MayStopEarly = c.mayStopEarly(j, e)
		return j.ended(e, storedAt)
	}
	j := c.applyToJob(e.JobID, sequence, e.At, storedAt, change)
	if j == nil {
		return nil
	}
	m := c.useModel(levelOf(&j.Setting))
	m.stopped(j)
	nodeType := ""
	if len(j.Hardware) > 0 {
		nodeType = j.Hardware[0].NodeType()
	}
	m.ended(BatchAndCPUs{j.Setting.BatchSize, j.Setting.CPUs}, nodeType, e)
	c.score.end(j)
	return j
}

// mayStopEarly reports whether a job may end with fewer epochs: its request or earlier jobs of the model
// say so, or it has reached its target accuracy.
func (c *Cluster) mayStopEarly(j *Job, e *schemas.Ended) bool {
	if q := j.Request; q != nil {
		accuracy := j.Accuracy
		if e.Accuracy != nil {
			accuracy = e.Accuracy
		}
		if q.MayStopEarly || q.TargetAccuracy > 0 && accuracy != nil && *accuracy >= q.TargetAccuracy {
			return true
		}
	}
	m := c.models[levelOf(&j.Setting)]
	return m != nil && m.StopsEarly()
}

// applyToJob finds or creates the job, applies the change, and updates the indices. It returns nil
// if change reports that nothing changed. at is the time of the event, storedAt the time at which
// the stream stored it.
func (c *Cluster) applyToJob(
	id string, sequence uint64, at, storedAt time.Time, change func(*Job) bool,
) *Job {
	j, inMemory := c.jobs[id]
	if !inMemory {
		j = c.unpackedOrNew(id, sequence, at, storedAt)
	}
	before, previous := j.Setting, j.State

	if !change(j) {
		return nil
	}
	if !inMemory {
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
	if previous == schemas.StateLost {
		c.score.uncountLost(j)
	}
	c.updateNodes(j, &before, previous == schemas.StateRunning, storedAt)
	c.updateQueue(j, previous, storedAt)
	c.updateEndedLists(j)
	c.expireUnstarted(storedAt)
	c.packEndedJobs()

	j.Last = max(j.Last, sequence)
	if storedAt.After(j.LastSeen) {
		j.LastSeen = storedAt
	}
	return j
}

// unpackedOrNew returns an unpacked copy of a packed job, or a new job. Neither is part of the
// state until insert.
func (c *Cluster) unpackedOrNew(id string, sequence uint64, at, storedAt time.Time) *Job {
	if p := c.packed[id]; p != nil {
		return p.unpack()
	}
	if at.After(storedAt) {
		at = storedAt
	}
	return &Job{ID: id, First: sequence, ListedAt: uint64(max(0, at.UnixMilli()))}
}

// insert adds a new job, or a job that was packed. The list is ordered by time, because
// imported jobs are older than their events in the stream.
func (c *Cluster) insert(j *Job) {
	if p := c.packed[j.ID]; p != nil {
		delete(c.packed, j.ID)
		c.packedByEnd.remove(listEntry{key: p.EndOrder, packed: p})
		c.order.replace(p.orderEntry(), j.orderEntry())
	} else {
		c.order.add(j.orderEntry())
	}
	c.jobs[j.ID] = j
}

// updateNodes updates the jobs and the load of each node after a job has changed.
func (c *Cluster) updateNodes(j *Job, before *schemas.Setting, ran bool, at time.Time) {
	runs := j.State == schemas.StateRunning
	if runs == ran && before.CPUs == j.Setting.CPUs && slices.Equal(before.Nodes, j.Setting.Nodes) {
		return
	}
	if ran {
		c.removeFromNodes(j, before.Nodes, at)
		c.loadIntegrals.change(before, -1, at)
	}
	if runs {
		c.addToNodes(j, at)
		c.loadIntegrals.change(&j.Setting, 1, at)
	} else {
		j.LoadAtLastEpoch = nil // the load integrals of its nodes may be dropped
	}
	c.loadIntegrals.prune(before.Nodes)
}

// updateQueue updates the queue and the arrivals after the state of a job has changed.
func (c *Cluster) updateQueue(j *Job, previous schemas.State, now time.Time) {
	if previous == j.State {
		return
	}
	switch previous {
	case schemas.StateQueued:
		c.dequeue(j)
	case schemas.StateSubmitted:
		if j.Promise != nil {
			c.arrivals.remove(j)
		}
	}
	switch {
	case j.State == schemas.StateQueued:
		c.enqueue(j)
	case j.IsExpected(now):
		c.arrivals.add(j)
	}
}

// submitted records the request of the job and its answer. A job that was started without a request
// keeps its state.
func (j *Job) submitted(e *schemas.Submitted) bool {
	if j.Request != nil {
		return false
	}
	request, answer := e.Request, e.Advice
	j.Request, j.Answer, j.SubmittedAt, j.User = &request, &answer, e.At, e.Request.User
	if j.State != "" {
		return true
	}
	j.State, j.Advice = schemas.StateSubmitted, Summarize(&e.Advice)
	switch v := e.Advice.Admission; {
	case v != nil && v.Verdict == schemas.Refused:
		j.State, j.Reason = schemas.StateRefused, policyVerdict(&e.Advice)
	case v != nil && v.Verdict == schemas.Queued:
		j.State, j.Reason = schemas.StateQueued, policyVerdict(&e.Advice)
	default:
		j.Promise = j.Advice
	}
	return true
}

// policyVerdict returns the part of an advice message that the admission policy wrote.
func policyVerdict(a *schemas.Advice) string {
	verdict, _, _ := strings.Cut(a.Message, ": ")
	return verdict
}

// admitted ends the queueing of the job.
func (j *Job) admitted(e *schemas.Advice) bool {
	if j.State != schemas.StateQueued {
		return false
	}
	j.State, j.Admission, j.Reason = schemas.StateSubmitted, e, ""
	j.Promise = Summarize(e)
	j.Advice = j.Promise
	return true
}

// started begins a run, unless the job has already started that run or a later one.
func (j *Job) started(e *schemas.Started, storedAt time.Time) bool {
	if e.Run <= j.Run {
		return false
	}
	j.beginRun(&e.Setting)
	j.IsElastic = slices.Contains(e.Moves, schemas.MoveCPUs)
	j.State, j.Run, j.Setting = schemas.StateRunning, e.Run, e.Setting
	j.HasHeartbeat = e.HeartbeatSeconds > 0
	j.ClockLag = 0
	if j.Request != nil {
		j.ClockLag = max(0, j.SubmittedAt.Sub(e.At))
	}
	j.StartedAt, j.EndedAt = j.correctedTime(e.At, storedAt), time.Time{}
	j.EpochsDone, j.LongestEpoch, j.Accuracy = 0, 0, nil
	j.Reason, j.MetSLO = "", nil
	if e.User != "" {
		j.User = e.User
	}
	return true
}

// beginRun records the configuration that a run begins with.
func (j *Job) beginRun(s *schemas.Setting) {
	j.InitialBatch, j.InitialCPUs, j.HasMoved, j.IsElastic = s.BatchSize, s.CPUs, false, false
	j.BarredMoves, j.Losses, j.Uses, j.Phases = nil, LossHistory{}, nil, schemas.Phases{}
	j.FormerUses, j.GrownFrom, j.MovedAfter = nil, 0, 0
}

// epoch records an epoch, unless it is a duplicate or belongs to a run that has ended. It also
// begins a run whose start event was lost, and revives a lost job.
func (j *Job) epoch(e *schemas.Epoch, storedAt time.Time) bool {
	if e.Run < j.Run || e.Run == j.Run && e.Epoch <= j.EpochsDone || j.IsOver() && e.Run == j.Run {
		return false
	}
	if e.Run > j.Run {
		j.beginRun(&e.Setting)
	} else {
		j.changeCPUs(e.CPUs)
	}
	if n := len(j.ObservedEpochs); n > 0 && j.ObservedEpochs[n-1].CPUs != e.CPUs {
		j.ObservedEpochs = nil // the epochs with the current CPUs correct the prediction better
	}
	if j.InitialBatch == 0 {
		j.InitialBatch = e.BatchSize // it was unknown at the start
	}
	j.HasMoved = j.HasMoved || e.BatchSize != j.InitialBatch
	if e.Run > j.Run || j.State != schemas.StateRunning {
		j.State, j.Run, j.EndedAt, j.Reason = schemas.StateRunning, e.Run, time.Time{}, ""
	}
	if j.StartedAt.IsZero() {
		j.StartedAt = j.correctedTime(e.At, storedAt).Add(
			-time.Duration(e.DurationSeconds * float64(time.Second)),
		)
	}
	j.Setting, j.EpochsDone = e.Setting, e.Epoch
	j.LongestEpoch = max(j.LongestEpoch, time.Duration(e.DurationSeconds*float64(time.Second)))
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	j.Phases.Add(e.Phases)
	return true
}

// ended ends the run of the event, unless it has already ended or the event is stale.
func (j *Job) ended(e *schemas.Ended, storedAt time.Time) bool {
	switch {
	case e.Run < j.Run, j.IsOver() && e.Run == j.Run:
		return false
	case e.Outcome == schemas.EventFound:
		return j.found(e)
	case e.Outcome == schemas.EventLost:
		if j.State != schemas.StateRunning || j.hasEventSince(e) {
			return false
		}
	case e.Outcome == schemas.EventCancelled:
		j.Run = e.Run // the start event of this run may have been lost
	default:
		if e.Run > j.Run {
			j.beginRun(&e.Setting)
		}
		j.Run, j.Setting = e.Run, e.Setting
		j.EpochsDone = max(j.EpochsDone, e.EpochsDone)
	}
	j.State, j.Reason = schemas.State(e.Outcome), e.Reason
	j.EndedAt = j.correctedTime(e.At, storedAt)
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	j.judgeSLO()
	return true
}

// found revives a lost run.
func (j *Job) found(e *schemas.Ended) bool {
	if j.State != schemas.StateLost || e.Run != j.Run {
		return false
	}
	j.State, j.EndedAt, j.Reason = schemas.StateRunning, time.Time{}, ""
	return true
}

// judgeSLO sets MetSLO of a job that has ended. It stays nil if the end does not show whether the
// job would have met its SLO: the job was cancelled or lost, or it is incomplete.
func (j *Job) judgeSLO() {
	j.MetSLO = nil
	if !j.HasDeadline() || j.IsIncomplete() {
		return
	}
	switch j.State {
	case schemas.StateFinished:
		met := !j.trainedAt().After(j.Deadline())
		j.MetSLO = &met
	case schemas.StateFailed:
		j.MetSLO = new(bool)
	}
}

// hasEventSince reports whether the job had an event after the last one that the lost event names.
// Then the job is alive, or the lost event is an old duplicate.
func (j *Job) hasEventSince(e *schemas.Ended) bool {
	text, isLost := strings.CutSuffix(strings.TrimPrefix(e.EventID, j.ID+"/"), "/lost")
	last, err := strconv.ParseUint(text, 10, 64)
	return isLost && err == nil && last < j.Last
}

const (
	// barTime is how long a number of CPUs is not planned for a job after its runner has undone or
	// refused the move to it (resource policies, section 1.3).
	barTime = 10 * time.Minute

	// maxBarredMoves bounds the barred moves of a job. The one that ends first is dropped first.
	maxBarredMoves = 16
)

// moved records a move of CPUs: it takes the CPUs of one that is in effect, bars one that the runner
// has undone or refused, and remembers the CPUs of a job that has grown by its own epochs. It returns
// false if that changes nothing, because the event is a duplicate, is too old, or describes another
// outcome.
func (j *Job) moved(e *schemas.Moved, storedAt time.Time) bool {
	if e.Move != schemas.MoveCPUs || e.Run != j.Run || j.State != schemas.StateRunning {
		return false
	}
	switch e.Outcome {
	case schemas.MoveApplied:
		return j.applied(e)
	case schemas.MoveCarriedOut:
		return j.grown(e)
	}
	if e.Outcome != schemas.MoveUndone && e.Outcome != schemas.MoveRefused {
		return false
	}
	until := j.correctedTime(e.At, storedAt).Add(barTime)
	if !until.After(storedAt) {
		return false
	}

	// The slice is copied, because snapshots share it.
	var kept []BarredMove
	for _, m := range j.BarredMoves {
		if m.CPUs == e.ToCPUs && !m.Until.Before(until) {
			return false
		}
		if m.CPUs != e.ToCPUs && m.Until.After(storedAt) {
			kept = append(kept, m)
		}
	}
	kept = append(kept, BarredMove{e.ToCPUs, until})
	slices.SortStableFunc(kept, func(a, b BarredMove) int { return a.Until.Compare(b.Until) })
	j.BarredMoves = kept[max(0, len(kept)-maxBarredMoves):]
	return true
}

// grown remembers the CPUs of a job before it grew by its own epochs.
func (j *Job) grown(e *schemas.Moved) bool {
	isGrowth := policy.Reason(e.Rule) == policy.ReasonOwnEpochs && e.ToCPUs > e.FromCPUs
	if !isGrowth || j.GrownFrom > 0 || j.Setting.CPUs < e.FromCPUs {
		return false
	}
	j.GrownFrom = e.FromCPUs
	return true
}

// applied takes the CPUs of a move that is in effect, unless an epoch with them, or a later one, has
// ended.
func (j *Job) applied(e *schemas.Moved) bool {
	if e.Epoch <= j.EpochsDone || e.ToCPUs == j.Setting.CPUs {
		return false
	}
	j.changeCPUs(e.ToCPUs)
	j.grown(e)
	return true
}

// changeCPUs sets the CPUs of the run. Until the first epoch with them has ended, the epochs before
// correct the predictions, as they did when the change was planned.
func (j *Job) changeCPUs(cpus uint32) {
	if cpus != j.Setting.CPUs && cpus <= j.GrownFrom {
		j.GrownFrom = 0
	}
	if cpus != j.Setting.CPUs {
		j.Setting.CPUs, j.MovedAfter = cpus, j.EpochsDone
	}
	j.HasMoved = j.HasMoved || cpus != j.InitialCPUs
}
