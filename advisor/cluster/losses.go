package cluster

import (
	"slices"
	"time"

	"courier/policy"
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

// History returns the losses for policy/quality. ioRatio is the job's share of the IO of its node.
func (l *LossHistory) History(silent time.Duration, ioRatio float64) policy.Losses {
	h := policy.Losses{First: l.First, Largest: l.Largest, SilentSeconds: silent.Seconds()}
	for _, r := range l.Reports {
		h.Reports = append(h.Reports, policy.LossReport{
			Seconds:     r.Seconds,
			Loss:        r.Loss,
			CPURatio:    r.CPURatio,
			IORatio:     ioRatio,
			IOWaitRatio: r.IOWait,
		})
	}
	return h
}

// IORate returns the bytes per second of the last report; 0 if they are unknown.
func (l *LossHistory) IORate() float64 {
	if len(l.Reports) == 0 {
		return 0
	}
	return l.Reports[len(l.Reports)-1].IORate
}

// IsDiverging reports whether the loss rises.
func (l *LossHistory) IsDiverging() bool {
	h := l.History(0, 0)
	return quality.IsDiverging(&h)
}
