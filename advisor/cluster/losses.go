package cluster

import (
	"slices"
	"time"

	"courier/policy"
	"courier/policy/quality"
	"courier/schemas"
)

// LossHistory holds the last losses of a run, at most quality.MaxReports. A job without a loss reports
// 1 - accuracy instead.
type LossHistory struct {
	policy.Losses
	IsError bool    `json:"is_error,omitempty"` // the losses are 1 - accuracy
	IORate  float64 `json:"io_rate,omitempty"`  // bytes per second since the previous report; 0 if unknown
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

	r := policy.LossReport{Loss: value, Seconds: e.DurationSeconds}
	if seconds := at.Sub(before).Seconds(); !before.IsZero() && seconds > 0 {
		r.Seconds = seconds
	}
	r.CPURatio = usedCPURatio(e, r.Seconds)
	if l.IORate = 0; e.JobReadBytes != nil && e.JobWrittenBytes != nil && r.Seconds > 0 {
		l.IORate = min(maxIORate, (*e.JobReadBytes+*e.JobWrittenBytes)/r.Seconds)
	}
	if e.NodeIOWaitRatio != nil {
		r.IOWaitRatio = *e.NodeIOWaitRatio
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
	cpus := float64(e.Processes())
	if used := e.JobCPUSeconds; used != nil && *used > 0 && seconds > 0 {
		cpus = *used / seconds
	}
	return min(1, cpus/float64(e.NodeCores))
}

// History returns the losses for policy/quality. ioRatio is the job's share of the IO of its node.
func (l *LossHistory) History(silent time.Duration, ioRatio float64) policy.Losses {
	h := l.Losses
	h.SilentSeconds, h.Reports = silent.Seconds(), slices.Clone(l.Reports)
	for i := range h.Reports {
		h.Reports[i].IORatio = ioRatio
	}
	return h
}

// IsDiverging reports whether the loss rises.
func (l *LossHistory) IsDiverging() bool { return quality.IsDiverging(&l.Losses) }
