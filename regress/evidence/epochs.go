package evidence

import "math"

// EpochTime is the predicted time of some epochs of a run.
type EpochTime struct {
	// Location of the log of their mean seconds, and Variance of the log of their sum.
	Location float64
	Variance float64
	Degrees  float64
	Support  Support
	Counts   RunCounts
	// Pace is the log ratio of a running job's own pace to the curve of past runs, for the epochs
	// that are left; 0 without own epochs.
	Pace float64
	// Correction that the prediction contains; the zero value if there is none.
	Correction Correction
}

// Known reports whether there is a prediction.
func (e *EpochTime) Known() bool { return e.Variance > 0 }

// Seconds returns the distribution of the total seconds of the epochs, whose number is given.
func (e *EpochTime) Seconds(epochs int) Distribution {
	if !e.Known() {
		return Distribution{}
	}
	return Distribution{math.Log(float64(max(epochs, 1))) + e.Location, math.Sqrt(e.Variance), e.Degrees}
}

// Epochs predicts the first epochs of a run of a configuration, with corrections for drift if by is
// not nil. It is unknown if the model never ran on the node type.
func (p *Predictor) Epochs(by *Corrections, c Configuration, epochs int) EpochTime {
	s := p.subjects[c.subject()]
	if s == nil || s.time == nil || !c.valid() {
		return EpochTime{}
	}
	c = c.Banded()
	t := s.time.times(&c)
	e := EpochTime{Support: t.support, Counts: t.counts}
	if e.Support == NeverRun {
		return e
	}
	n := max(epochs, 1)
	total := t.total(n)
	e.Location, e.Degrees = total.location-math.Log(float64(n)), total.degrees
	e.Variance = total.shared + total.run + s.time.model.loadVariance(n)
	if by != nil {
		e.correct(by.Of(c), total.shared)
	}
	return e
}

// correct applies a correction. It may subtract at most the variance that the runs of the
// configuration share.
func (e *EpochTime) correct(x Correction, shared float64) {
	e.Correction = x
	e.Location += x.Shift
	if x != (Correction{}) {
		e.Variance = max(e.Variance+x.Variance, e.Variance-shared)
		e.Degrees = min(e.Degrees, correctedDegrees)
	}
}

// Time predicts the time of a number of epochs, including the start-up if it was ever measured. It
// is unknown if the model never ran on the node type.
func (p *Predictor) Time(c Configuration, epochs int) Time {
	return p.CorrectedTime(nil, c, epochs)
}

// CorrectedTime is Time with corrections for drift; by may be nil.
func (p *Predictor) CorrectedTime(by *Corrections, c Configuration, epochs int) Time {
	e := p.Epochs(by, c, epochs)
	t := Time{Support: e.Support, Counts: e.Counts, Correction: e.Correction}
	if !e.Known() {
		return t
	}
	t.Distribution = e.Seconds(epochs)
	if startup := p.Startup(c); startup.Known() {
		t.StartupSeconds = startup.Median()
		t.Distribution = t.Plus(startup)
	}
	return t
}
