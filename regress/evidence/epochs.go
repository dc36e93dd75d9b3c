package evidence

import "math"

// EpochTime is the predicted time of the epochs of one run that has not finished.
type EpochTime struct {
	// Location of the log of the seconds of an epoch.
	Location float64
	// Variance of the run's own mean about it, and Noise of each epoch about that.
	Variance, Noise float64
	Degrees         float64
	Support         Support
	Counts          RunCounts
	// Correction that the prediction contains; the zero value if there is none.
	Correction Correction
}

// Known reports whether there is a prediction.
func (e *EpochTime) Known() bool { return e.Variance > 0 }

// Seconds returns the distribution of the total seconds of a number of epochs.
func (e *EpochTime) Seconds(epochs int) Distribution {
	if !e.Known() {
		return Distribution{}
	}
	n := float64(max(epochs, 1))
	return Distribution{math.Log(n) + e.Location, math.Sqrt(e.Variance + e.Noise/n), e.Degrees}
}

// Given returns the prediction after some epochs of the run itself with a mean duration (normal
// posterior). The more epochs, the closer it is to their mean.
func (e EpochTime) Given(meanSeconds float64, epochs int) EpochTime {
	if !e.Known() || epochs < 1 || !isPlausible(meanSeconds) {
		return e
	}
	noise := max(e.Noise, minNoise) / float64(epochs)
	share := e.Variance / (e.Variance + noise)
	e.Location += share * (math.Log(meanSeconds) - e.Location)
	e.Variance = share * noise
	return e
}

// minNoise is the minimum noise of an epoch, so that a run with equal epoch times is not certain.
const minNoise = 1e-6

// Epochs predicts the epoch time of a run of a configuration, with corrections for drift if by is
// not nil. It is unknown if the model never ran on the node type.
func (p *Predictor) Epochs(by *Corrections, c Configuration) EpochTime {
	s := p.subjects[c.subject()]
	if s == nil || s.time == nil || !c.valid() {
		return EpochTime{}
	}
	c = c.Banded()
	e, support, counts := s.time.estimate(&c)
	t := EpochTime{Support: support, Counts: counts}
	if support == NeverRun {
		return t
	}
	t.Location, t.Variance = e.mean, e.variance+e.run
	t.Noise, t.Degrees = s.time.model.EpochVariance, s.time.degrees(support)
	if by != nil {
		t.correct(by.Of(c), e.variance)
	}
	return t
}

// correct applies a correction. It may subtract at most the variance that the runs of the
// configuration share.
func (e *EpochTime) correct(x Correction, shared float64) {
	e.Correction = x
	e.Location += x.Shift
	e.Variance = max(e.Variance+x.Variance, e.Variance-shared) * x.Inflation
	e.Noise *= x.Inflation
	e.Degrees = min(e.Degrees, correctedDegrees)
}

// Time predicts the time of a number of epochs, including the start-up if it was ever measured. It
// is unknown if the model never ran on the node type.
func (p *Predictor) Time(c Configuration, epochs int) Time {
	return p.CorrectedTime(nil, c, epochs)
}

// CorrectedTime is Time with corrections for drift; by may be nil.
func (p *Predictor) CorrectedTime(by *Corrections, c Configuration, epochs int) Time {
	e := p.Epochs(by, c)
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

// LargestEpochs returns the largest number of epochs, up to most, that takes at most limit seconds
// with the given probability, after corrections; 0 if there is none.
func (p *Predictor) LargestEpochs(
	by *Corrections, c Configuration, limit, probability float64, most int,
) int {
	low, high := 0, most // low is within the limit
	for low < high {
		middle := low + (high-low+1)/2
		if t := p.CorrectedTime(by, c, middle); t.Known() && t.Probability(limit) >= probability {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
