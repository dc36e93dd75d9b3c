package runner

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// Values of Options.StopWhenLate: what happens when the next epoch would probably end too late.
const (
	StopOff     = "off"     // nothing
	StopControl = "control" // the control file asks the job to end
	StopSignal  = "signal"  // the job gets SIGTERM
)

var stopValues = []string{StopOff, StopControl, StopSignal}

// epochFit predicts whether one more epoch, with its validation and checkpoint, ends before the
// wall: the deadline of the SLO, or the time at which Slurm kills the job. It knows only the times
// between the reports of this run.
type epochFit struct {
	wall time.Time // zero: none
	logs []float64 // logarithms of the seconds between the last reports, per epoch
}

// maxFitEpochs bounds the epochs that a prediction uses, so that it follows a changing load.
const maxFitEpochs = 20

// Prior of the spread of an epoch's logarithm, as strong as two epochs: the times of a run's epochs
// differ by some per cent, and two equal ones must not imply certainty.
const (
	priorEpochSpread = 0.1
	priorEpochWeight = 2
)

// slurmEnd is the variable with the time at which Slurm ends the job, in Unix seconds.
const slurmEnd = "SLURM_JOB_END_TIME"

// wallOf returns the earlier of the deadline and the end of Slurm's time limit; zero without both.
func wallOf(submitted time.Time, slo time.Duration, slurmEnd string) time.Time {
	var wall time.Time
	if slo > 0 {
		wall = submitted.Add(slo)
	}
	if seconds, err := strconv.ParseInt(slurmEnd, 10, 64); err == nil && seconds > 0 {
		if end := time.Unix(seconds, 0); wall.IsZero() || end.Before(wall) {
			wall = end
		}
	}
	return wall
}

// add takes the time between two reports, per epoch.
func (f *epochFit) add(seconds float64) {
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return
	}
	f.logs = append(f.logs[max(0, len(f.logs)+1-maxFitEpochs):], math.Log(seconds))
}

// distribution returns the predictive distribution of the next epoch. It is unknown before the
// first epoch.
func (f *epochFit) distribution() evidence.Distribution {
	n := float64(len(f.logs))
	if n == 0 {
		return evidence.Distribution{}
	}
	mean, squares := 0.0, 0.0
	for _, v := range f.logs {
		mean += v / n
	}
	for _, v := range f.logs {
		squares += (v - mean) * (v - mean)
	}
	degrees := n - 1 + priorEpochWeight
	variance := (squares + priorEpochWeight*priorEpochSpread*priorEpochSpread) / degrees
	return evidence.Distribution{
		Location: mean,
		Scale:    math.Sqrt(variance * (1 + 1/n)),
		Degrees:  degrees,
	}
}

// probability returns the probability that an epoch that starts at an instant ends before the wall;
// nil if it is unknown.
func (f *epochFit) probability(start time.Time) *float64 {
	d := f.distribution()
	if f.wall.IsZero() || !d.Known() {
		return nil
	}
	return new(d.Probability(f.wall.Sub(start).Seconds()))
}

// fitEpochs takes the epochs that were reported together, and informs the job whether the next one
// fits.
func (j *job) fitEpochs(seconds float64, batchSize uint32) {
	if batchSize != j.fitBatchSize {
		j.fit.logs, j.fitBatchSize = nil, batchSize
	}
	j.fit.add(seconds)
	j.control.NextEpochProbability = j.fit.probability(time.Now())
	if wall := j.fit.wall; !wall.IsZero() {
		j.control.DeadlineAt = &wall
	}
	j.stopIfLate()
	if j.controlPath == "" {
		return
	}
	if err := j.writeControlFile(); err != nil {
		j.log.Warn("control file not updated", "error", err)
	}
}

// stopIfLate asks the job to end if another epoch would probably end too late.
func (j *job) stopIfLate() {
	p, epochs := j.control.NextEpochProbability, j.result.Setting.Epochs
	if j.o.StopWhenLate == StopOff || p == nil || j.control.Stop || j.result.Cancelled ||
		epochs > 0 && j.epochs.last >= epochs {
		return
	}
	confidence := j.o.Request.WithDefaults().Confidence
	if *p >= confidence {
		return
	}
	j.control.Stop = true
	j.lateReason = fmt.Sprintf("stopped after epoch %d: the next epoch ends before %s with a "+
		"probability of %s, less than %s", j.epochs.last, j.fit.wall.UTC().Format(time.RFC3339),
		schemas.FormatProbability(*p), schemas.FormatProbability(confidence))
	j.screen.message("%s", j.lateReason)
	if j.o.StopWhenLate == StopSignal {
		j.stop()
	}
}
