package advisor

import (
	"fmt"
	"slices"
	"time"

	"courier/policy/quality"
	"courier/schemas"
)

// lossHistory holds the last losses of a run. A job without a loss reports 1 - accuracy instead.
type lossHistory struct {
	isError        bool // the losses are 1 - accuracy
	first, largest float64
	reports        []lossReport // at most quality.MaxReports; shared by questions and snapshots
}

// lossReport is the loss of an epoch, with what the job used since the previous one.
type lossReport struct {
	loss     float64
	seconds  float64
	cpuRatio float64 // of the node
	ioRate   float64 // bytes per second; 0 if unknown
	ioWait   float64 // of the node's CPUs; 0 if unknown
}

// add records the loss of an epoch. before is the end of the previous one, or the start of the run.
// A run that once reported a loss is not compared by its accuracy.
func (l *lossHistory) add(e *schemas.Epoch, before, at time.Time) {
	value, isError := 0.0, e.Loss == nil
	switch {
	case e.Loss != nil:
		value = *e.Loss
	case e.Accuracy != nil:
		value = 1 - *e.Accuracy
	default:
		return
	}
	if len(l.reports) > 0 && isError != l.isError {
		return
	}
	if len(l.reports) == 0 {
		l.isError, l.first, l.largest = isError, value, value
	}
	l.largest = max(l.largest, value)

	r := lossReport{loss: value, seconds: e.DurationSeconds}
	if seconds := at.Sub(before).Seconds(); !before.IsZero() && seconds > 0 {
		r.seconds = seconds
	}
	r.cpuRatio = usedCPURatio(e, r.seconds)
	if e.JobReadBytes != nil && e.JobWrittenBytes != nil && r.seconds > 0 {
		r.ioRate = min(maxIORate, (*e.JobReadBytes+*e.JobWrittenBytes)/r.seconds)
	}
	if e.NodeIOWaitRatio != nil {
		r.ioWait = *e.NodeIOWaitRatio
	}
	kept := l.reports[max(0, len(l.reports)+1-quality.MaxReports):]
	l.reports = append(slices.Clone(kept), r)
}

// maxIORate bounds the bytes per second of a report. A faulty one must not become infinite, because a
// snapshot cannot hold that.
const maxIORate = 1e15

// usedCPURatio returns the mean CPU of the job as a share of its node: the granted CPUs if the used
// ones are unknown.
func usedCPURatio(e *schemas.Epoch, seconds float64) float64 {
	if e.NodeCores == 0 {
		return 0
	}
	cpus := float64(e.CPUs)
	if used := e.JobCPUSeconds; used != nil && *used > 0 && seconds > 0 {
		cpus = *used / seconds
	}
	return min(1, cpus/float64(e.NodeCores))
}

// history returns the losses for policy/quality. ioRatio is the job's share of the IO of its node.
func (l *lossHistory) history(silent time.Duration, ioRatio float64) quality.History {
	h := quality.History{First: l.first, Largest: l.largest, SilentSeconds: silent.Seconds()}
	for _, r := range l.reports {
		h.Reports = append(h.Reports, quality.Report{
			Seconds:     r.seconds,
			Loss:        r.loss,
			CPURatio:    r.cpuRatio,
			IORatio:     ioRatio,
			IOWaitRatio: r.ioWait,
		})
	}
	return h
}

// ioRate returns the bytes per second of the last report; 0 if they are unknown.
func (l *lossHistory) ioRate() float64 {
	if len(l.reports) == 0 {
		return 0
	}
	return l.reports[len(l.reports)-1].ioRate
}

// isDiverging reports whether the loss rises.
func (l *lossHistory) isDiverging() bool {
	h := l.history(0, 0)
	_, w := quality.Observe(&h, quality.Options{})
	return w != nil && w.IsDiverging
}

// isDivergenceWarned reports whether the last warning of a rising loss is not over yet.
func (j *Job) isDivergenceWarned() bool {
	d := j.Divergence
	return d != nil && d.Run == j.Run && !d.Cleared
}

// warnDivergence returns a warning if the loss of a running job rises, the all-clear if it no longer
// does, or nil if neither is due. A risk has the probability of an SLO, so a job without one has none.
func warnDivergence(j *Job, q *Question, a *schemas.Advice) *schemas.Risk {
	isDiverging, isWarned := j.losses.isDiverging(), j.isDivergenceWarned()
	if isDiverging == isWarned || len(j.losses.reports) == 0 {
		return nil
	}
	now := a.Running(j.Setting.BatchSize, j.Setting.CPUs)
	if now == nil || now.Probability == nil || now.PredictedSeconds == nil {
		return nil
	}
	r := &schemas.Risk{
		Cleared:          isWarned,
		Cause:            schemas.CauseDiverging,
		Probability:      *now.Probability,
		Confidence:       a.Confidence,
		PredictedSeconds: *now.PredictedSeconds,
		LeftSeconds:      q.left(),
		Action:           string(schemas.ActionKeep),
	}
	r.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run}
	r.Message = j.losses.message(isWarned)
	return r
}

// message describes a rising loss, or its end.
func (l *lossHistory) message(isOver bool) string {
	name := "loss"
	if l.isError {
		name = "error (1 - accuracy)"
	}
	first, last := l.reports[0].loss, l.reports[len(l.reports)-1].loss
	if isOver {
		return fmt.Sprintf("all clear: the %s no longer rises, it is %.4g", name, last)
	}
	return fmt.Sprintf("the %s rose in each of the last %d epochs, from %.4g to %.4g",
		name, len(l.reports)-1, first, last)
}
