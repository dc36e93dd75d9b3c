package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// submitted records the request of the job and its answer. A job that was started without a request
// keeps its state.
func (j *Job) submitted(e *schemas.Submitted) bool {
	if j.Request != nil {
		return false
	}
	request, answer := e.Request, e.Advice
	j.Request, j.Answer, j.SubmittedAt, j.User = &request, &answer, e.At, e.Request.User
	j.MayStopEarly = answer.MayStopEarly
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
	j.MovesLoaders = slices.Contains(e.Moves, schemas.MoveLoaders)
	j.State, j.Run, j.Setting = schemas.StateRunning, e.Run, e.Setting
	j.HasHeartbeat, j.HasLastHeartbeat = e.HeartbeatSeconds > 0, false
	j.ClockLag = 0
	if j.Request != nil {
		j.ClockLag = max(0, j.SubmittedAt.Sub(e.At))
	}
	j.StartedAt, j.EndedAt = j.correctedTime(e.At, storedAt), time.Time{}
	j.EpochsDone, j.LongestEpoch, j.Accuracy, j.BestAccuracy = 0, 0, nil, nil
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
	j.FormerUses, j.MovedAfter, j.MovesLoaders = nil, 0, false
	j.Together, j.EpochsFollow = 0, false
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
	if n := len(j.ObservedEpochs); n > 0 && j.ObservedEpochs[n-1].CPUs != e.Processes() {
		j.ObservedEpochs = nil // the epochs with the current CPUs correct the prediction better
	}
	if e.Loaders != j.Setting.Loaders {
		j.ObservedEpochs, j.Uses, j.FormerUses = nil, nil, nil
	}
	j.InitialBatch = cmp.Or(j.InitialBatch, e.BatchSize) // it was unknown at the start
	j.HasMoved = j.HasMoved || e.BatchSize != j.InitialBatch
	if e.Run > j.Run || j.State != schemas.StateRunning {
		j.State, j.Run, j.EndedAt, j.Reason = schemas.StateRunning, e.Run, time.Time{}, ""
	}
	if j.StartedAt.IsZero() {
		j.StartedAt = j.correctedTime(e.At, storedAt).Add(-e.Duration())
	}
	j.Setting, j.EpochsDone = e.Setting, e.Epoch
	j.LongestEpoch = max(j.LongestEpoch, e.Duration())
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
		if j.BestAccuracy == nil || *e.Accuracy > *j.BestAccuracy {
			j.BestAccuracy = e.Accuracy
		}
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

// dropProgress drops what only a running job needs from one that has ended, and bounds its texts.
func (j *Job) dropProgress() {
	if j.Request != nil && labelBytes(j.Request.Labels) > maxLabelBytes {
		request := *j.Request
		request.Labels = nil
		j.Request = &request
	}
	j.Reason = j.Reason[:min(len(j.Reason), maxReasonBytes)]
	j.Risk, j.Divergence = nil, nil
	if j.Advice != nil && j.Run > 0 {
		j.Advice = &AdviceSummary{Decision: j.Advice.Decision, CauseSequence: j.Advice.CauseSequence}
	}
	j.Hardware, j.ObservedEpochs, j.LoadAtLastEpoch = nil, nil, nil
	j.Usage, j.IOWait, j.Losses = schemas.Usage{}, 0, LossHistory{}
	j.ProgressAt, j.LastSeen, j.Within = time.Time{}, time.Time{}, EpochProgress{}
	j.Uses, j.FormerUses, j.BarredMoves = nil, nil, nil
}

// labelBytes returns the size of labels.
func labelBytes(labels map[string]string) (n int) {
	for name, value := range labels {
		n += len(name) + len(value)
	}
	return n
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
		j.MetSLO = new(!j.TrainedAt().After(j.Deadline()))
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

// moved records a move: it takes the CPUs of one that is in effect, and bars one that the runner has undone
// or refused. It returns false if that changes nothing, because the event is a duplicate, is too old, or
// describes another outcome.
func (j *Job) moved(e *schemas.Moved, storedAt time.Time) bool {
	if e.Run != j.Run || j.State != schemas.StateRunning {
		return false
	}
	isBarred := e.Outcome == schemas.MoveUndone || e.Outcome == schemas.MoveRefused
	switch {
	case e.Move == schemas.MoveLoaders && isBarred:
		j.MovesLoaders = false // for the rest of the run
		return true
	case e.Move != schemas.MoveCPUs:
		return false
	}
	if e.Outcome == schemas.MoveApplied {
		return j.applied(e)
	}
	if !isBarred {
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

// applied takes the CPUs of a move that is in effect, unless an epoch with them, or a later one, has
// ended.
func (j *Job) applied(e *schemas.Moved) bool {
	if e.Epoch <= j.EpochsDone || e.ToCPUs == j.Setting.CPUs {
		return false
	}
	j.changeCPUs(e.ToCPUs)
	return true
}

// changeCPUs sets the CPUs of the run. Until the first epoch with them has ended, the epochs before
// correct the predictions, as they did when the change was planned.
func (j *Job) changeCPUs(cpus uint32) {
	if cpus != j.Setting.CPUs {
		j.Setting.CPUs, j.MovedAfter = cpus, j.EpochsDone
	}
	j.HasMoved = j.HasMoved || cpus != j.InitialCPUs
}
