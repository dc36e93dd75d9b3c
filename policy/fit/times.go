package fit

import (
	"math"
	"time"

	"courier/policy"
	"courier/policy/speed"
)

// planned is a job that may be resized, with its times by the speed model.
type planned struct {
	*policy.Training
	mean speed.StepReport // of the window
	// remaining is the time to the end, requested that from start to end in the requested shape, and
	// left that to the deadline, all in seconds; left is infinite without a deadline.
	remaining, requested, left float64
	elapsed, pause             float64 // seconds
}

func newPlanned(job *policy.Job, now time.Time) planned {
	j, left := job.Training, math.Inf(1)
	if !job.Deadline.IsZero() {
		left = job.Deadline.Sub(now).Seconds()
	}
	return planned{
		Training:  j,
		mean:      speed.MeanOf(j.Window),
		remaining: j.RemainingSamples / j.Model.Speed(j.Shape),
		requested: (j.DoneSamples + j.RemainingSamples) / j.Model.Speed(j.Requested),
		left:      left,
		elapsed:   j.Elapsed.Seconds(),
		pause:     j.Pause.Seconds(),
	}
}

// minSpeed returns the lowest speed, in samples per second, with which a job ends in time after a
// move: see endsInTime and keepsDeadline. It is infinite if no speed suffices.
func (j *planned) minSpeed() float64 {
	if left := min(j.requested-j.elapsed, j.left) - j.pause; left > 0 {
		return j.RemainingSamples / left
	}
	return math.Inf(1)
}

// paysBack reports whether a ratio of the speed, or of core-seconds, saves enough of the remaining
// time for its pause.
func (j *planned) paysBack(ratio float64) bool {
	return ratio > 1 && j.remaining-j.remaining/ratio >= costFactor*j.pause
}

// endsInTime reports whether a job with a ratio of its speed still ends no later than it would have
// with the requested shape.
func (j *planned) endsInTime(ratio float64) bool {
	return j.elapsed+j.pause+j.remaining/ratio <= j.requested
}

// keepsDeadline reports whether a job with a ratio of its speed still ends by its deadline.
func (j *planned) keepsDeadline(ratio float64) bool {
	return j.left >= j.pause+j.remaining/ratio
}

// isRestorable reports whether a job that would end later than with the requested shape may have a
// shape: it may take back the cores that it gave up, although others wait for them.
func (j *planned) isRestorable(to speed.Shape) bool {
	return to.Cores() <= j.Requested.Cores() && j.elapsed+j.remaining > j.requested
}

// surelyEndsInTime reports whether a job that gives up cores is almost certain to exceed its time in
// the requested shape by at most lateRatio. The speeds of both shapes are estimates, so both
// have a bound.
func (j *planned) surelyEndsInTime(to speed.Shape) bool {
	shortest := j.requested * math.Exp(-lateFactor*j.Model.StandardError(j.Requested))
	mean, standardError := j.Model.Gain(j.Requested, to)
	slowest := math.Exp(mean - lateFactor*standardError) // relative to the requested shape

	spent := (j.elapsed + j.pause) / shortest
	left := j.RemainingSamples / (j.DoneSamples + j.RemainingSamples)
	return spent+left/slowest <= 1+lateRatio
}

// judge compares the latest move of a job with its prediction, and returns a move that undoes it if
// less than half of the gain came and going back pays.
//
// Two windows differ by noise alone, so the measured gain counts at its upper bound. A move that
// brought some speed is kept even if it promised more: going back would cost a pause to lose it.
func (p *resizePlan) judge(j *planned, record *policy.Record) *proposal {
	trial := record.Trial
	record.Trial = nil
	if trial == nil || trial.From == j.Shape || !trial.From.IsValid(j.Facts.HasServers) {
		return nil
	}
	after := j.Facts.Speed(j.Shape, j.mean.StepSeconds)
	measured := math.Log(after / j.Facts.Speed(trial.From, trial.StepSeconds))
	cores := math.Log(float64(j.Shape.Cores()) / float64(trial.From.Cores()))
	gain := measured
	if trial.IsShrink {
		gain -= cores
	}
	reports := 1/float64(len(j.Window)) + 1/float64(max(1, trial.Reports))
	bound := deadlineFactor * speed.NoiseRatio * math.Sqrt(reports)
	if gain+bound >= trial.Gain/2 {
		record.Fruitless = 0
		return nil
	}

	record.Fruitless++
	record.Barred = append(record.Barred, policy.BarredShape{
		Shape: j.Shape, Until: p.view.Now.Add(barredTime),
	})
	if record.Fruitless >= fruitlessMoves {
		record.Fruitless = 0
		record.RestUntil = p.view.Now.Add(restTime)
	}
	ratio, lower := math.Exp(-measured), math.Exp(-measured-bound)
	isFaster := j.paysBack(lower)
	isCheaper := cores > 0 && j.paysBack(lower*math.Exp(cores)) && j.keepsDeadline(lower)
	if !isFaster && !isCheaper {
		return nil
	}
	return &proposal{Move: policy.Move{
		Shape: trial.From, Reason: policy.ReasonUndo,
		SpeedRatio: ratio, LowerSpeedRatio: lower,
	}}
}
