package advisor

import (
	"maps"
	"math"
	"slices"

	"courier/schemas"
)

// Recalibration corrects probabilities and bounds by the outcomes of past promises. It depends on
// the event log only, because a recorded promise includes its figures. Questions share it; the
// cluster then changes a copy.
//
// At first the residuals come from the regressor. Each ended job replaces one of them by the
// residual of the whole job, which includes the effect of jobs that start later. No regressor of
// epochs knows that effect.
//
// The residual of a job depends on its kind: a job with few CPUs is slowed down more by jobs that
// start later. So each kind of job has a shift, the mean of its residuals, and the table holds the
// residuals without the shift.
type Recalibration struct {
	recent []float64               // residuals of the last jobs without the shift, oldest first
	sorted []float64               // the same residuals, sorted
	kinds  map[jobKind]residualSum // residuals by kind
	all    residualSum             // residuals of all kinds
	alpha  map[float64]float64     // by confidence: permitted failure rate of bounds
	digest string                  // regressor of epoch times of the last job

	lastKinds  []jobKind // keys of kinds by last use
	lastAlphas []float64 // keys of alpha by last use
}

// Parameters of the recalibration (adaptive conformal inference, Gibbs and Candes 2021).
const (
	recalibrationWindow = 200  // number of residuals
	alphaStep           = 0.02 // learning rate of alpha

	// Alpha stays within these multiples of 1 - confidence. With alpha 0 nothing could be
	// promised, and without promises alpha would never rise again.
	minAlphaRatio, maxAlphaRatio = 0.2, 3
)

// jobKind holds the properties that affect the residual of a job and are known before the job runs.
type jobKind struct {
	model, dataset string
	cpus           uint32
}

func kindOf(s *schemas.Setting) jobKind { return jobKind{s.Model, s.Dataset, s.CPUs} }

// residualSum is a sum of residuals in which old ones fade.
type residualSum struct{ sum, n float64 }

// Parameters of the shift of a kind of job, and limits on the entries in memory.
const (
	jobKindWindow    = 50  // number of residuals of a kind
	jobKindShrinkage = 4   // weight of the mean of all kinds, in residuals
	maxJobKinds      = 256 // maximum; the least recently used kind is evicted
	maxAlphas        = 64  // maximum; the least recently used confidence is evicted
)

func (t residualSum) add(residual, window float64) residualSum {
	if t.n >= window {
		t.sum, t.n = t.sum*(window-1)/window, window-1
	}
	return residualSum{t.sum + residual, t.n + 1}
}

// shift returns the mean residual of a kind of job. It is shrunk towards the mean of all kinds,
// which is shrunk towards 0.
func (r *Recalibration) shift(k jobKind) float64 {
	if r == nil {
		return 0
	}
	common := r.all.sum / (r.all.n + jobKindShrinkage)
	t := r.kinds[k]
	return (t.sum + jobKindShrinkage*common) / (t.n + jobKindShrinkage)
}

// isMiscalibrated reports whether bounds have failed so often that the residuals come from
// conditions that the regressor did not know.
func (r *Recalibration) isMiscalibrated() bool {
	for confidence, a := range r.alpha {
		if a < (1-confidence)/2 {
			return true
		}
	}
	return false
}

// forRegressor returns the recalibration for jobs that a new regressor predicts. If bounds failed
// often, it is dropped, because the new regressor has learnt from those jobs. Otherwise nothing
// could be promised until the window is replaced.
func (r *Recalibration) forRegressor(digest string) *Recalibration {
	if r == nil || r.digest == digest || !r.isMiscalibrated() {
		return r
	}
	return nil
}

// predictedRun compares a finished job with its prediction.
type predictedRun struct {
	digest     string // of the regressor of epoch times
	kind       jobKind
	predicted  float64 // seconds
	bound      float64 // seconds; 0 without a bound
	confidence float64 // of the bound
	measured   float64 // seconds
}

// residual returns the log ratio of the measured to the predicted time.
func (o *predictedRun) residual() float64 { return math.Log(o.measured / o.predicted) }

// isFinite reports whether the residual is finite.
func (o *predictedRun) isFinite() bool {
	residual := o.residual()
	return !math.IsNaN(residual) && !math.IsInf(residual, 0)
}

// clone returns a copy that may be changed. The copy of nil is empty.
func (r *Recalibration) clone() *Recalibration {
	if r == nil {
		return &Recalibration{kinds: map[jobKind]residualSum{}, alpha: map[float64]float64{}}
	}
	next := *r
	next.recent, next.sorted = slices.Clone(r.recent), slices.Clone(r.sorted)
	next.kinds, next.alpha = maps.Clone(r.kinds), maps.Clone(r.alpha)
	next.lastKinds, next.lastAlphas = slices.Clone(r.lastKinds), slices.Clone(r.lastAlphas)
	return &next
}

// add adds a finished job. The recalibration must not be shared.
func (r *Recalibration) add(o *predictedRun) {
	residual := o.residual()
	r.digest = o.digest
	r.addResidual(residual - r.shift(o.kind))
	r.all = r.all.add(residual, recalibrationWindow)
	r.kinds[o.kind] = r.kinds[o.kind].add(residual, jobKindWindow)
	evictKind := func(old jobKind) { delete(r.kinds, old) }
	r.lastKinds = lastUsed(r.lastKinds, o.kind, maxJobKinds, evictKind)
	if o.bound > 0 {
		r.updateAlpha(o)
	}
}

// addResidual adds a residual, and drops the oldest one if the window is full.
func (r *Recalibration) addResidual(residual float64) {
	if len(r.recent) >= recalibrationWindow {
		at, _ := slices.BinarySearch(r.sorted, r.recent[0])
		r.sorted, r.recent = slices.Delete(r.sorted, at, at+1), slices.Delete(r.recent, 0, 1)
	}
	at, _ := slices.BinarySearch(r.sorted, residual)
	r.sorted, r.recent = slices.Insert(r.sorted, at, residual), append(r.recent, residual)
}

// updateAlpha adapts alpha to whether the bound held.
func (r *Recalibration) updateAlpha(o *predictedRun) {
	miss := 0.0
	if o.measured > o.bound {
		miss = 1
	}
	fair := 1 - o.confidence
	alpha := r.missRate(o.confidence) + alphaStep*(fair-miss)
	r.alpha[o.confidence] = min(max(alpha, minAlphaRatio*fair), maxAlphaRatio*fair)
	evictAlpha := func(old float64) { delete(r.alpha, old) }
	r.lastAlphas = lastUsed(r.lastAlphas, o.confidence, maxAlphas, evictAlpha)
}

// lastUsed moves an element to the end of a list, or appends it, and returns the list. If the list
// exceeds the limit, the first element is removed and passed to forget.
func lastUsed[T comparable](all []T, one T, limit int, forget func(T)) []T {
	if at := slices.Index(all, one); at >= 0 {
		all = slices.Delete(all, at, at+1)
	}
	if all = append(all, one); len(all) > limit {
		forget(all[0])
		all = slices.Delete(all, 0, 1)
	}
	return all
}

// missRate returns the share of bounds that may fail so that the confidence is kept.
func (r *Recalibration) missRate(confidence float64) float64 {
	if r != nil {
		if a, ok := r.alpha[confidence]; ok {
			return a
		}
	}
	return 1 - confidence
}

// table returns the sorted residuals.
func (r *Recalibration) table() []float64 {
	if r == nil {
		return nil
	}
	return r.sorted
}

// rank returns how many residuals are at most x, and how many there are.
func (r *Recalibration) rank(x float64) (rank, count int) {
	return rankIn(r.table(), x), len(r.table())
}

// calibrated maps the share of a table to a probability, so that the level that keeps a confidence
// is mapped to that confidence.
func (r *Recalibration) calibrated(share, confidence float64) float64 {
	level := 1 - r.missRate(confidence)
	if share <= level {
		return share * confidence / level
	}
	return 1 - (1-share)*(1-confidence)/(1-level)
}

// recordOutcome adds a finished job to the recalibration if it ran as advised. The time is measured
// from its start, because the delay before it was not predicted.
func (c *Cluster) recordOutcome(j *Job) {
	if !j.asAdvised() || j.EpochsDone != j.Setting.Epochs {
		return
	}
	a := j.Promise
	chosen := a.Chosen
	if chosen.PredictedSeconds == nil {
		return
	}
	bound := 0.0
	if chosen.UpperBoundSeconds != nil && a.Decision == schemas.MeetsSLO {
		bound = *chosen.UpperBoundSeconds
	}
	c.addOutcome(&predictedRun{
		digest:     a.Regressors[schemas.TargetEpochTime],
		kind:       kindOf(&j.Setting),
		predicted:  *chosen.PredictedSeconds,
		bound:      bound,
		confidence: a.Confidence,
		measured:   j.trainedAt().Sub(j.StartedAt).Seconds(),
	})
}

// addOutcome adds a finished job to the recalibration. It copies the recalibration only if a
// question or a snapshot may share it.
func (c *Cluster) addOutcome(o *predictedRun) {
	if !o.isFinite() {
		return
	}
	r := c.recalibration.forRegressor(o.digest)
	if r == nil || c.recalibrationShared.Swap(false) {
		r = r.clone()
	}
	r.add(o)
	c.recalibration = r
}

// meanThresholds hold the minimum probabilities for promises with schemas.PromiseMean, whose
// confidence applies to the mean of all promises. Most jobs have an SLO far from the time that they
// need, and keep it with more than the confidence. The surplus permits promises with a lower
// probability to other jobs. The thresholds depend on the event log only.
type meanThresholds map[float64]*meanThreshold // by confidence

// meanThreshold is the state for one confidence.
type meanThreshold struct {
	threshold    float64     // current minimum probability of a promise
	overestimate residualSum // probabilities minus outcomes (1: kept, 0: broken)
}

// Parameters of the mean thresholds.
const (
	meanThresholdStep = 0.2 // learning rate of a threshold
	minMeanThreshold  = 0.5 // below it a promise would more likely be missed than met
	meanWindow        = 200 // promises that determine overestimate
	meanShrinkage     = 20  // weight of an overestimate of 0, in promises
	maxMeanThresholds = 64  // confidences; any other applies to each promise
)

// threshold returns the minimum probability that a request may be promised; 0 means its confidence.
func (m meanThresholds) threshold(q *schemas.JobRequest) float64 {
	if q.Promise != schemas.PromiseMean || q.SLO == 0 {
		return 0
	}
	if s, known := m[q.Confidence]; known {
		return math.Round(s.threshold*1e4) / 1e4 // independent of the order of additions
	}
	return q.Confidence
}

// addPromise moves the threshold by the difference between the confidence and the expected outcome
// of a promise. Adaptive conformal inference (Gibbs, Candes 2021) moves a level by the actual
// outcome in the same way.
func (m meanThresholds) addPromise(j *Job) {
	p, ok := meanPromise(j)
	if !ok {
		return
	}
	c := j.Promise.Confidence
	s := m[c]
	if s == nil {
		if len(m) >= maxMeanThresholds {
			return
		}
		s = &meanThreshold{threshold: c}
		m[c] = s
	}
	expected := p - s.overestimate.sum/(s.overestimate.n+meanShrinkage)
	s.threshold = min(max(s.threshold+meanThresholdStep*(c-expected), min(minMeanThreshold, c)), c)
}

// end learns from the outcome of a promise, so that the SLO attainment approaches the confidence
// even if probabilities are too high.
func (m meanThresholds) end(j *Job) {
	p, ok := meanPromise(j)
	o, isKnown := j.Outcome()
	if !ok || !isKnown || !o.AsAdvised {
		return
	}
	if o.Kept {
		p--
	}
	if s := m[j.Promise.Confidence]; s != nil {
		s.overestimate = s.overestimate.add(p, meanWindow)
	}
}

// meanPromise returns the probability of a promise with schemas.PromiseMean.
func meanPromise(j *Job) (p float64, ok bool) {
	if j == nil || j.Promise == nil || j.Promise.Threshold == 0 ||
		j.Promise.Decision != schemas.MeetsSLO || j.Promise.Chosen.Probability == nil {
		return 0, false
	}
	return *j.Promise.Chosen.Probability, true
}
