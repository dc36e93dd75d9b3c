package advisor

import (
	"maps"
	"math"
	"slices"

	"courier/schemas"
)

// Record is how the promises of the past came out: what the present ones are
// corrected by. Questions keep it; the cluster changes a copy then. It
// follows from the log alone, because a promise is recorded with its figures.
//
// The table of residuals is that of the regressor at first; each job that ends
// puts one of its own, of the whole job, in the place of one of them. A whole
// job's residual holds what no regressor of epochs knows: jobs that came later.
//
// How much longer a job takes than predicted depends on what it is: one with few
// CPUs suffers more from those that come later. So each kind of job has a shift,
// the mean of its residuals, and the table holds what they scatter around it.
type Recalibration struct {
	recent []float64               // residuals of the last jobs less the shift of their kind then, oldest first
	sorted []float64               // the same in order
	kinds  map[jobKind]residualSum // residuals of each kind
	all    residualSum             // residuals of all
	alpha  map[float64]float64     // by confidence: how often a bound may fail (Gibbs, Candes 2021)
	digest string                  // of the regressor of epoch times that predicted the last of them

	lastKinds  []jobKind // by their last use
	lastAlphas []float64 // likewise
}

const (
	recalibrationWindow = 200  // residuals that count (models: adaptive conformal)
	alphaStep           = 0.02 // how fast alpha learns
	// Alpha stays within these multiples of what was asked for. At 0 nothing
	// could be promised, and what is never accepted never teaches that it can be.
	minAlphaRatio, maxAlphaRatio = 0.2, 3
)

// kind is what a job's residual depends on, of all that is known before it runs.
type jobKind struct {
	model, dataset string
	cpus           uint32
}

func kindOf(s *schemas.Setting) jobKind { return jobKind{s.Model, s.Dataset, s.CPUs} }

// total adds up residuals; old ones fade.
type residualSum struct{ sum, n float64 }

const (
	jobKindWindow    = 50  // residuals of a kind that count
	jobKindShrinkage = 4   // the mean of all counts like so many residuals of a kind
	maxJobKinds      = 256 // that are remembered, the least recently used go first; an unknown one has the shift of all
	maxAlphas        = 64  // confidences that are remembered, likewise; an unknown one begins anew
)

func (t residualSum) add(residual, window float64) residualSum {
	if t.n >= window {
		t.sum, t.n = t.sum*(window-1)/window, window-1
	}
	return residualSum{t.sum + residual, t.n + 1}
}

// shift is how much longer a kind of job takes than predicted, as a logarithm:
// its own mean, shrunk towards that of all, and that towards 0.
func (r *Recalibration) shift(k jobKind) float64 {
	if r == nil {
		return 0
	}
	common := r.all.sum / (r.all.n + jobKindShrinkage)
	t := r.kinds[k]
	return (t.sum + jobKindShrinkage*common) / (t.n + jobKindShrinkage)
}

// broken reports whether bounds failed so often lately that what the record holds
// is of a spell which the regressor did not know.
func (r *Recalibration) isMiscalibrated() bool {
	for confidence, a := range r.alpha {
		if a < (1-confidence)/2 {
			return true
		}
	}
	return false
}

// by is the record for jobs that another regressor predicts. That one has learnt of
// the spell that broke the promises of the last: were its residuals kept, nothing
// could be promised for as many jobs as the window holds.
func (r *Recalibration) forRegressor(digest string) *Recalibration {
	if r == nil || r.digest == digest || !r.isMiscalibrated() {
		return r
	}
	return nil
}

// outcome is what became of a job that was predicted.
type predictedRun struct {
	digest     string // of the regressor of epoch times
	kind       jobKind
	predicted  float64 // seconds
	bound      float64 // seconds; 0: it had none
	confidence float64 // that the bound was to hold with
	measured   float64 // seconds
}

// residual is how much longer the job took than predicted, as a logarithm.
func (o *predictedRun) residual() float64 { return math.Log(o.measured / o.predicted) }

// counts reports whether the record learns from the outcome.
func (o *predictedRun) counts() bool {
	residual := o.residual()
	return !math.IsNaN(residual) && !math.IsInf(residual, 0)
}

// clone returns a copy that may be changed, an empty record of nil.
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

// add changes the record by an outcome that counts. Nobody else may have the record.
func (r *Recalibration) add(o *predictedRun) {
	residual := o.residual()
	r.digest = o.digest
	r.addResidual(residual - r.shift(o.kind))
	r.all = r.all.add(residual, recalibrationWindow)
	r.kinds[o.kind] = r.kinds[o.kind].add(residual, jobKindWindow)
	r.lastKinds = lastUsed(r.lastKinds, o.kind, maxJobKinds, func(old jobKind) { delete(r.kinds, old) })
	if o.bound > 0 {
		r.updateAlpha(o)
	}
}

// addRecent adds a residual, and drops the oldest beyond the window.
func (r *Recalibration) addResidual(residual float64) {
	if len(r.recent) >= recalibrationWindow {
		at, _ := slices.BinarySearch(r.sorted, r.recent[0])
		r.sorted, r.recent = slices.Delete(r.sorted, at, at+1), slices.Delete(r.recent, 0, 1)
	}
	at, _ := slices.BinarySearch(r.sorted, residual)
	r.sorted, r.recent = slices.Insert(r.sorted, at, residual), append(r.recent, residual)
}

// addBound learns from whether the bound held.
func (r *Recalibration) updateAlpha(o *predictedRun) {
	miss := 0.0
	if o.measured > o.bound {
		miss = 1
	}
	fair := 1 - o.confidence
	alpha := r.missRate(o.confidence) + alphaStep*(fair-miss)
	r.alpha[o.confidence] = min(max(alpha, minAlphaRatio*fair), maxAlphaRatio*fair)
	r.lastAlphas = lastUsed(r.lastAlphas, o.confidence, maxAlphas, func(old float64) { delete(r.alpha, old) })
}

// lastUsed changes a list by last use after one of it, or a new one, is used, and returns
// it. Beyond the limit the first is forgotten.
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

// failing is the share of bounds that may fail for a confidence to be kept.
func (r *Recalibration) missRate(confidence float64) float64 {
	if r != nil {
		if a, ok := r.alpha[confidence]; ok {
			return a
		}
	}
	return 1 - confidence
}

// table returns the own residuals in order.
func (r *Recalibration) table() []float64 {
	if r == nil {
		return nil
	}
	return r.sorted
}

// rank is how many of the own residuals are at most x, and how many there are.
func (r *Recalibration) rank(x float64) (rank, count int) {
	return rankIn(r.table(), x), len(r.table())
}

// calibrated maps the share of a table to a probability, so that the level which
// keeps the confidence is that confidence.
func (r *Recalibration) calibrated(share, confidence float64) float64 {
	level := 1 - r.missRate(confidence)
	if share <= level {
		return share * confidence / level
	}
	return 1 - (1-share)*(1-confidence)/(1-level)
}

// keep adds a job that has finished to the record, if it ran as it was advised.
// It is measured from its start: how long its owner let it wait was not predicted.
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

// learn adds an outcome to the record. It copies the record only where a question or a
// snapshot may have kept it: there are none while the log is replayed.
func (c *Cluster) addOutcome(o *predictedRun) {
	if !o.counts() {
		return
	}
	r := c.recalibration.forRegressor(o.digest)
	if r == nil || c.recalibrationShared.Swap(false) {
		r = r.clone()
	}
	r.add(o)
	c.recalibration = r
}

// means holds what is promised where the confidence is the mean of all promises
// that ask for it. Most jobs have an SLO far from what they need, and keep it with
// more than the confidence: what they have too much lets others be promised with
// less. It is a fold over the log.
type meanThresholds map[float64]*meanThreshold // by confidence

// mean is the state for one confidence.
type meanThreshold struct {
	threshold float64     // least probability that is promised now
	isOver    residualSum // by how much probabilities were more than what came of them
}

const (
	meanThresholdStep = 0.2  // how fast a threshold follows
	minMeanThreshold  = 0.5  // nothing is promised that is rather broken than kept
	meanWindow        = 1000 // promises by which probabilities are judged
	meanShrinkage     = 100  // probabilities count as true like so many of them
	maxMeanThresholds = 64   // confidences that are remembered; with any other each promise has it
)

// threshold is the least probability that a request may be promised; 0: its
// confidence.
func (m meanThresholds) threshold(q *schemas.JobRequest) float64 {
	if q.Promise != schemas.PromiseMean || q.SLO == 0 {
		return 0
	}
	if s, known := m[q.Confidence]; known {
		return math.Round(s.threshold*1e4) / 1e4 // the same in whichever order two advisors counted
	}
	return q.Confidence
}

// promise moves the threshold by a promise that a job was given: by how much less
// than the confidence is what it is expected to come to, as the level of adaptive
// conformal inference (Gibbs, Candes 2021) moves by what came.
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
	expected := p - s.isOver.sum/(s.isOver.n+meanShrinkage)
	s.threshold = min(max(s.threshold+meanThresholdStep*(c-expected), min(minMeanThreshold, c)), c)
}

// end learns from what came of a promise, so that the share that is kept becomes
// the confidence also where probabilities say too much.
func (m meanThresholds) end(j *Job) {
	p, ok := meanPromise(j)
	o, told := j.Outcome()
	if !ok || !told || !o.AsAdvised {
		return
	}
	if o.Kept {
		p--
	}
	if s := m[j.Promise.Confidence]; s != nil {
		s.isOver = s.isOver.add(p, meanWindow)
	}
}

// meant returns the probability of a promise whose confidence is a mean.
func meanPromise(j *Job) (p float64, ok bool) {
	if j == nil || j.Promise == nil || j.Promise.Threshold == 0 ||
		j.Promise.Decision != schemas.MeetsSLO || j.Promise.Chosen.Probability == nil {
		return 0, false
	}
	return *j.Promise.Chosen.Probability, true
}
