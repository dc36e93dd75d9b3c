package advisor

import (
	"math"
	"slices"
	"sort"

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
	Recent []float64         `json:"recent"` // residuals of the last jobs without the shift, oldest first
	Kinds  []kindResiduals   `json:"kinds"`  // by last use
	All    residualSum       `json:"all"`    // residuals of all kinds
	Alphas []confidenceAlpha `json:"alphas"` // by last use
	Digest string            `json:"digest"` // regressor of epoch times of the last job

	sorted []float64 // Recent, sorted
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
	Model   string `json:"model"`
	Dataset string `json:"dataset,omitempty"`
	CPUs    uint32 `json:"cpus"`
}

func kindOf(s *schemas.Setting) jobKind { return jobKind{s.Model, s.Dataset, s.CPUs} }

// residualSum is a sum of residuals in which old ones fade.
type residualSum struct {
	Sum float64 `json:"sum"`
	N   float64 `json:"n"`
}

// kindResiduals are the residuals of a kind of job.
type kindResiduals struct {
	jobKind
	residualSum
}

// confidenceAlpha is the permitted failure rate of the bounds with a confidence.
type confidenceAlpha struct {
	Confidence float64 `json:"confidence"`
	Alpha      float64 `json:"alpha"`
}

// Parameters of the shift of a kind of job, and limits on the entries in memory.
const (
	jobKindWindow    = 50  // number of residuals of a kind
	jobKindShrinkage = 4   // weight of the mean of all kinds, in residuals
	maxJobKinds      = 256 // maximum; the least recently used kind is evicted
	maxAlphas        = 64  // maximum; the least recently used confidence is evicted
)

func (t residualSum) add(residual, window float64) residualSum {
	if t.N >= window {
		t.Sum, t.N = t.Sum*(window-1)/window, window-1
	}
	return residualSum{t.Sum + residual, t.N + 1}
}

// shift returns the mean residual of a kind of job. It is shrunk towards the mean of all kinds,
// which is shrunk towards 0.
func (r *Recalibration) shift(k jobKind) float64 {
	if r == nil {
		return 0
	}
	common := r.All.Sum / (r.All.N + jobKindShrinkage)
	t := r.residualsOf(k)
	return (t.Sum + jobKindShrinkage*common) / (t.N + jobKindShrinkage)
}

// residualsOf returns the residuals of a kind of job.
func (r *Recalibration) residualsOf(k jobKind) residualSum {
	for i := range r.Kinds {
		if r.Kinds[i].jobKind == k {
			return r.Kinds[i].residualSum
		}
	}
	return residualSum{}
}

// isMiscalibrated reports whether bounds have failed so often that the residuals come from
// conditions that the regressor did not know.
func (r *Recalibration) isMiscalibrated() bool {
	for _, a := range r.Alphas {
		if a.Alpha < (1-a.Confidence)/2 {
			return true
		}
	}
	return false
}

// forRegressor returns the recalibration for jobs that a new regressor predicts. If bounds failed
// often, it is dropped, because the new regressor has learnt from those jobs. Otherwise nothing
// could be promised until the window is replaced.
func (r *Recalibration) forRegressor(digest string) *Recalibration {
	if r == nil || r.Digest == digest || !r.isMiscalibrated() {
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
		return &Recalibration{}
	}
	next := *r
	next.Recent, next.sorted = slices.Clone(r.Recent), slices.Clone(r.sorted)
	next.Kinds, next.Alphas = slices.Clone(r.Kinds), slices.Clone(r.Alphas)
	return &next
}

// sort sorts the residuals after decoding.
func (r *Recalibration) sort() { r.sorted = slices.Sorted(slices.Values(r.Recent)) }

// add adds a finished job. The recalibration must not be shared.
func (r *Recalibration) add(o *predictedRun) {
	residual := o.residual()
	r.Digest = o.digest
	r.addResidual(residual - r.shift(o.kind))
	r.All = r.All.add(residual, recalibrationWindow)
	kind := kindResiduals{o.kind, r.residualsOf(o.kind).add(residual, jobKindWindow)}
	isKind := func(k kindResiduals) bool { return k.jobKind == o.kind }
	r.Kinds = replaceLast(r.Kinds, kind, isKind, maxJobKinds)
	if o.bound > 0 {
		r.updateAlpha(o)
	}
}

// addResidual adds a residual, and drops the oldest one if the window is full.
func (r *Recalibration) addResidual(residual float64) {
	if len(r.Recent) >= recalibrationWindow {
		at, _ := slices.BinarySearch(r.sorted, r.Recent[0])
		r.sorted, r.Recent = slices.Delete(r.sorted, at, at+1), slices.Delete(r.Recent, 0, 1)
	}
	at, _ := slices.BinarySearch(r.sorted, residual)
	r.sorted, r.Recent = slices.Insert(r.sorted, at, residual), append(r.Recent, residual)
}

// updateAlpha adapts alpha to whether the bound held.
func (r *Recalibration) updateAlpha(o *predictedRun) {
	miss := 0.0
	if o.measured > o.bound {
		miss = 1
	}
	fair := 1 - o.confidence
	alpha := r.missRate(o.confidence) + alphaStep*(fair-miss)
	alpha = min(max(alpha, minAlphaRatio*fair), maxAlphaRatio*fair)
	isSame := func(a confidenceAlpha) bool { return a.Confidence == o.confidence }
	r.Alphas = replaceLast(r.Alphas, confidenceAlpha{o.confidence, alpha}, isSame, maxAlphas)
}

// replaceLast appends an element that replaces the one that isSame finds. If the list exceeds the
// limit, the first element is removed.
func replaceLast[T any](all []T, one T, isSame func(T) bool, limit int) []T {
	if at := slices.IndexFunc(all, isSame); at >= 0 {
		all = slices.Delete(all, at, at+1)
	} else if len(all) >= limit {
		all = slices.Delete(all, 0, 1)
	}
	return append(all, one)
}

// missRate returns the share of bounds that may fail so that the confidence is kept.
func (r *Recalibration) missRate(confidence float64) float64 {
	if r != nil {
		for _, a := range r.Alphas {
			if a.Confidence == confidence {
				return a.Alpha
			}
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
	table := r.table()
	return sort.Search(len(table), func(i int) bool { return table[i] > x }), len(table)
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
	p := j.Promise
	if p.PredictedSeconds == nil {
		return
	}
	bound := 0.0
	if p.UpperBoundSeconds != nil && p.Decision == schemas.MeetsSLO {
		bound = *p.UpperBoundSeconds
	}
	c.addOutcome(&predictedRun{
		digest:     p.Regressor,
		kind:       kindOf(&j.Setting),
		predicted:  *p.PredictedSeconds,
		bound:      bound,
		confidence: p.Confidence,
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
type meanThresholds []meanThreshold

// meanThreshold is the state for one confidence.
type meanThreshold struct {
	Confidence   float64     `json:"confidence"`
	Threshold    float64     `json:"threshold"`    // current minimum probability of a promise
	Overestimate residualSum `json:"overestimate"` // probabilities minus outcomes (1: kept, 0: broken)
}

// of returns the state for a confidence, or nil.
func (m meanThresholds) of(confidence float64) *meanThreshold {
	for i := range m {
		if m[i].Confidence == confidence {
			return &m[i]
		}
	}
	return nil
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
	if s := m.of(q.Confidence); s != nil {
		return math.Round(s.Threshold*1e4) / 1e4 // independent of the order of additions
	}
	return q.Confidence
}

// addPromise moves the threshold by the difference between the confidence and the expected outcome
// of a promise. Adaptive conformal inference (Gibbs, Candes 2021) moves a level by the actual
// outcome in the same way.
func (m *meanThresholds) addPromise(j *Job) {
	p, ok := meanPromise(j)
	if !ok {
		return
	}
	c := j.Promise.Confidence
	s := m.of(c)
	if s == nil {
		if len(*m) >= maxMeanThresholds {
			return
		}
		*m = append(*m, meanThreshold{Confidence: c, Threshold: c})
		s = m.of(c)
	}
	expected := p - s.Overestimate.Sum/(s.Overestimate.N+meanShrinkage)
	s.Threshold = min(max(s.Threshold+meanThresholdStep*(c-expected), min(minMeanThreshold, c)), c)
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
	if s := m.of(j.Promise.Confidence); s != nil {
		s.Overestimate = s.Overestimate.add(p, meanWindow)
	}
}

// meanPromise returns the probability of a promise with schemas.PromiseMean.
func meanPromise(j *Job) (p float64, ok bool) {
	if j == nil || j.Promise == nil || j.Promise.Threshold == 0 ||
		j.Promise.Decision != schemas.MeetsSLO || j.Promise.Probability == nil {
		return 0, false
	}
	return *j.Promise.Probability, true
}
