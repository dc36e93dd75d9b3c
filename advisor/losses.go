package advisor

import (
	"fmt"
	"slices"
	"time"

	"courier/policy/quality"
	"courier/schemas"
)

// LossHistory holds the last losses of a run. A job without a loss reports 1 - accuracy instead.
type LossHistory struct {
	IsError bool         `json:"is_error,omitempty"` // the losses are 1 - accuracy
	First   float64      `json:"first"`
	Largest float64      `json:"largest"`
	Reports []LossReport `json:"reports"` // at most quality.MaxReports
}

// LossReport is the loss of an epoch, with what the job used since the previous one.
type LossReport struct {
	Loss     float64 `json:"loss"`
	Seconds  float64 `json:"seconds"`
	CPURatio float64 `json:"cpu_ratio"`         // of the node
	IORate   float64 `json:"io_rate,omitempty"` // bytes per second; 0 if unknown
	IOWait   float64 `json:"io_wait,omitempty"` // of the node's CPUs; 0 if unknown
}

// add records the loss of an epoch. before is the end of the previous one, or the start of the run.
// A run that once reported a loss is not compared by its accuracy.
func (l *LossHistory) add(e *schemas.Epoch, before, at time.Time) {
	value, isError := 0.0, e.Loss == nil
	switch {
	case e.Loss != nil:
		value = *e.Loss
	case e.Accuracy != nil:
		value = 1 - *e.Accuracy
	default:
		return
	}
	if len(l.Reports) > 0 && isError != l.IsError {
		return
	}
	if len(l.Reports) == 0 {
		l.IsError, l.First, l.Largest = isError, value, value
	}
	l.Largest = max(l.Largest, value)

	r := LossReport{Loss: value, Seconds: e.DurationSeconds}
	if seconds := at.Sub(before).Seconds(); !before.IsZero() && seconds > 0 {
		r.Seconds = seconds
	}
	r.CPURatio = usedCPURatio(e, r.Seconds)
	if e.JobReadBytes != nil && e.JobWrittenBytes != nil && r.Seconds > 0 {
		r.IORate = min(maxIORate, (*e.JobReadBytes+*e.JobWrittenBytes)/r.Seconds)
	}
	if e.NodeIOWaitRatio != nil {
		r.IOWait = *e.NodeIOWaitRatio
	}
	kept := l.Reports[max(0, len(l.Reports)+1-quality.MaxReports):]
	l.Reports = append(slices.Clone(kept), r)
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
func (l *LossHistory) history(silent time.Duration, ioRatio float64) quality.History {
	h := quality.History{First: l.First, Largest: l.Largest, SilentSeconds: silent.Seconds()}
	for _, r := range l.Reports {
		h.Reports = append(h.Reports, quality.Report{
			Seconds:     r.Seconds,
			Loss:        r.Loss,
			CPURatio:    r.CPURatio,
			IORatio:     ioRatio,
			IOWaitRatio: r.IOWait,
		})
	}
	return h
}

// ioRate returns the bytes per second of the last report; 0 if they are unknown.
func (l *LossHistory) ioRate() float64 {
	if len(l.Reports) == 0 {
		return 0
	}
	return l.Reports[len(l.Reports)-1].IORate
}

// isDiverging reports whether the loss rises.
func (l *LossHistory) isDiverging() bool {
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
	isDiverging, isWarned := j.Losses.isDiverging(), j.isDivergenceWarned()
	if isDiverging == isWarned || len(j.Losses.Reports) == 0 {
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
	r.Message = j.Losses.message(isWarned)
	return r
}

// message describes a rising loss, or its end.
func (l *LossHistory) message(isOver bool) string {
	name := "loss"
	if l.IsError {
		name = "error (1 - accuracy)"
	}
	first, last := l.Reports[0].Loss, l.Reports[len(l.Reports)-1].Loss
	if isOver {
		return fmt.Sprintf("all clear: the %s no longer rises, it is %.4g", name, last)
	}
	return fmt.Sprintf("the %s rose in each of the last %d epochs, from %.4g to %.4g",
		name, len(l.Reports)-1, first, last)
}
