package advisor

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

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

// recalled returns a packed job to be changed, or a new one. It is not part of the state
// before it is inserted.
func (c *Cluster) recalled(id string, sequence uint64) *Job {
	if p := c.past[id]; p != nil {
		return p.unpack()
	}
	return &Job{ID: id, first: sequence}
}

// insert adds a job that has changed for the first time, or again after it was packed. A
// submission that this process recorded may be applied before an older event arrives, so
// the order is that of sequences.
func (c *Cluster) insert(j *Job) {
	if p := c.past[j.ID]; p != nil {
		delete(c.past, j.ID)
		c.old.remove(entry{key: p.filed, past: p})
		c.order.replace(entry{key: p.first, past: p}, entry{key: p.first, job: j})
	} else {
		c.order.add(entry{key: j.first, job: j})
	}
	c.jobs[j.ID] = j
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

// hold keeps the indices of the jobs that have not started, after a job has changed: those
// that wait in the queue, and those that a policy admitted.
func (c *Cluster) hold(j *Job, was schemas.State, now time.Time) {
	if was == j.State {
		return
	}
	switch was {
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
	case j.expected(now):
		c.arrivals.add(j)
	}
}

func (j *Job) submitted(e *schemas.Submitted) bool {
	if j.Submitted != nil {
		return false
	}
	kept := *e
	kept.EncodedAdvice = nil // a second copy of the advice
	j.Submitted, j.User = &kept, e.Request.User
	if j.State != "" {
		return true
	}
	j.State, j.Advice = schemas.StateSubmitted, &kept.Advice
	switch v := e.Advice.Admission; {
	case v != nil && v.Verdict == schemas.Refused:
		j.State, j.Reason = schemas.StateRefused, why(&e.Advice)
	case v != nil && v.Verdict == schemas.Queued:
		j.State, j.Reason = schemas.StateQueued, why(&e.Advice)
	default:
		j.Promise = &kept.Advice
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
	j.StartedAt, j.EndedAt, j.EpochsDone, j.LongestEpoch, j.Accuracy, j.Reason, j.MetSLO = j.happened(
		e.At, storedAt,
	), time.Time{}, 0, 0, nil, "", nil
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
		j.StartedAt = j.happened(e.At, storedAt).Add(
			-time.Duration(e.DurationSeconds * float64(time.Second)),
		)
	}
	j.Setting, j.EpochsDone = e.Setting, e.Epoch
	j.LongestEpoch = max(j.LongestEpoch, time.Duration(e.DurationSeconds*float64(time.Second)))
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	return true
}

// lap notes an epoch that has just ended.
func (c *Cluster) lap(j *Job, e *schemas.Epoch, storedAt time.Time) {
	before := j.epochAt
	if before.IsZero() {
		before = j.StartedAt
	}
	foreign := c.foreignDuring(j, e, before.Add(-j.behind), storedAt)
	now := c.tallies.snapshot(j.Setting.Nodes, storedAt)
	if load, node, ok := c.between(j.mark, now); ok &&
		j.State == schemas.StateRunning { // else nobody counted it
		foreign.Set(&load.Load)
		l := lap{e.BatchSize, e.DurationSeconds, load, node}
		j.laps = append(slices.Clone(j.laps[max(0, len(j.laps)+1-keptLaps):]), l)
	}
	j.mark, j.progressAt, j.epochAt, j.ioWait = now, storedAt, j.happened(e.At, storedAt), 0
	if e.NodeIOWaitRatio != nil {
		j.ioWait = *e.NodeIOWaitRatio
	}
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

func (j *Job) ended(e *schemas.Ended, storedAt time.Time) bool {
	switch {
	case e.Run < j.Run, j.over() && e.Run == j.Run:
		return false
	case e.Outcome == schemas.EventLost:
		if j.State != schemas.StateRunning || j.heardSince(e) {
			return false
		}
	case e.Outcome == schemas.EventCancelled:
		j.Run = e.Run // of a run that began unseen: it is over, too
	default:
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

// heardSince reports whether an event of the job came after the one that a lost event names
// as the last: the job was heard meanwhile, or the lost event is a copy of an old one.
func (j *Job) heardSince(e *schemas.Ended) bool {
	text, isLost := strings.CutSuffix(strings.TrimPrefix(e.EventID, j.ID+"/"), "/lost")
	last, err := strconv.ParseUint(text, 10, 64)
	return isLost && err == nil && last < j.last
}

// file keeps the lists of jobs that have ended and of those that may be abandoned.
func (c *Cluster) file(j *Job) {
	submitted := j.State == schemas.StateSubmitted
	if j.due > 0 && !submitted {
		c.due.remove(entry{key: j.due, job: j})
		j.due = 0
	}
	if j.filed > 0 && !j.resting() {
		c.ended.remove(entry{key: j.filed, job: j})
		j.filed = 0
	}
	switch {
	case submitted && j.due == 0 && j.filed == 0:
		j.due = uint64(j.abandonedAt().UnixNano())
		c.due.add(entry{key: j.due, job: j})
	case j.resting() && j.filed == 0:
		c.fileEnded(j)
	}
}

func (c *Cluster) fileEnded(j *Job) {
	c.ends++
	j.filed = c.ends
	c.ended.add(entry{key: j.filed, job: j})
}

// How long after it was told to start a job that has not started counts as abandoned. It is
// then treated like an ended job, but stays submitted, and may still be started.
const (
	abandonedSLOs  = 10                  // of its SLO, and not before
	abandonedLeast = 24 * time.Hour      // this
	abandonedAfter = 30 * 24 * time.Hour // without an SLO
)

// abandonedAt is when a submitted job that has not started counts as abandoned. The time
// begins with the promise that it may start, because it may have waited for that.
func (j *Job) abandonedAt() time.Time {
	if j.hasDeadline() {
		slo := min(time.Duration(j.Submitted.Request.SLO), schemas.MaxSLO)
		return j.Promise.At.Add(max(abandonedLeast, slo*abandonedSLOs))
	}
	return j.Promise.At.Add(abandonedAfter)
}

// abandon files the submitted jobs that were not started in time.
func (c *Cluster) abandon(now time.Time) {
	for {
		e, ok := c.due.first()
		if !ok || int64(e.key) > now.UnixNano() {
			return
		}
		c.due.remove(e)
		e.job.due = 0
		c.fileEnded(e.job)
	}
}

// forgetJobs packs and drops the jobs that ended first.
func (c *Cluster) forgetJobs() {
	for c.ended.count > c.limits.whole {
		e, _ := c.ended.first()
		c.ended.remove(e)
		p := e.job.pack()
		delete(c.jobs, p.id)
		c.past[p.id] = p
		c.order.replace(entry{key: p.first, job: e.job}, entry{key: p.first, past: p})
		c.old.add(entry{key: p.filed, past: p})
	}
	for c.old.count > max(0, c.limits.ended-c.limits.whole) {
		e, _ := c.old.first()
		c.old.remove(e)
		delete(c.past, e.past.id)
		c.order.remove(entry{key: e.past.first, past: e.past})
	}
}
