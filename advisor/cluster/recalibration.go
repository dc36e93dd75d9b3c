package cluster

import (
	"math"
	"slices"

	"courier/schemas"
)

// Recalibration corrects probabilities and bounds by the outcomes of past promises. It depends on
// the event log only, because a recorded promise includes its figures. It never changes: the cluster
// replaces it.
//
// The residual of a whole job includes the effect of jobs that start later, which no regressor of
// epochs knows. It depends on the kind of job: a job with few CPUs is slowed down more. So each kind of
// job has a shift, the mean of its residuals.
type Recalibration struct {
	Kinds  []kindResiduals   `json:"kinds"`  // by last use
	All    residualSum       `json:"all"`    // residuals of all kinds
	Alphas []ConfidenceAlpha `json:"alphas"` // by last use
	Digest string            `json:"digest"` // regressor of epoch times of the last job
}

// Parameters of the recalibration (adaptive conformal inference, Gibbs and Candes 2021).
const (
	recalibrationWindow = 200  // number of residuals of all kinds
	alphaStep           = 0.02 // learning rate of alpha

	// Alpha stays within these multiples of 1 - confidence. With alpha 0 nothing could be
	// promised, and without promises alpha would never rise again.
	minAlphaRatio, maxAlphaRatio = 0.2, 3
)

// JobKind holds the properties that affect the residual of a job and are known before the job runs.
type JobKind struct {
	Model   string `json:"model"`
	Dataset string `json:"dataset,omitempty"`
	CPUs    uint32 `json:"cpus"`
}

// KindOf returns the kind of a job with a setting.
func KindOf(s *schemas.Setting) JobKind { return JobKind{s.Model, s.Dataset, s.CPUs} }

// residualSum is a sum of residuals in which old ones fade.
type residualSum struct {
	Sum float64 `json:"sum"`
	N   float64 `json:"n"`
}

// kindResiduals are the residuals of a kind of job.
type kindResiduals struct {
	JobKind
	residualSum
}

// ConfidenceAlpha is the permitted failure rate of the bounds with a confidence.
type ConfidenceAlpha struct {
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

// Shift returns the mean residual of a kind of job. It is shrunk towards the mean of all kinds,
// which is shrunk towards 0.
func (r *Recalibration) Shift(k JobKind) float64 {
	if r == nil {
		return 0
	}
	common := r.All.Sum / (r.All.N + jobKindShrinkage)
	t := r.residualsOf(k)
	return (t.Sum + jobKindShrinkage*common) / (t.N + jobKindShrinkage)
}

// residualsOf returns the residuals of a kind of job.
func (r *Recalibration) residualsOf(k JobKind) residualSum {
	for i := range r.Kinds {
		if r.Kinds[i].JobKind == k {
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
// could be promised until alpha has recovered.
func (r *Recalibration) forRegressor(digest string) *Recalibration {
	if r == nil || r.Digest == digest || !r.isMiscalibrated() {
		return r
	}
	return nil
}

// predictedRun compares a finished job with its prediction.
type predictedRun struct {
	digest     string // of the regressor of epoch times
	kind       JobKind
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

// with returns the recalibration after another finished job. It ignores times that are not finite.
func (r *Recalibration) with(o *predictedRun) *Recalibration {
	if !o.isFinite() {
		return r
	}
	next := &Recalibration{Digest: o.digest}
	if r = r.forRegressor(o.digest); r != nil {
		next.Kinds, next.All, next.Alphas = slices.Clone(r.Kinds), r.All, slices.Clone(r.Alphas)
	}
	next.addResidual(o.kind, o.residual())
	if o.bound > 0 {
		next.updateAlpha(o)
	}
	return next
}

// addResidual adds the residual of a job.
func (r *Recalibration) addResidual(kind JobKind, residual float64) {
	r.All = r.All.add(residual, recalibrationWindow)
	sum := kindResiduals{kind, r.residualsOf(kind).add(residual, jobKindWindow)}
	isKind := func(k kindResiduals) bool { return k.JobKind == kind }
	r.Kinds = replaceLast(r.Kinds, sum, isKind, maxJobKinds)
}

// updateAlpha adapts alpha to whether the bound held.
func (r *Recalibration) updateAlpha(o *predictedRun) {
	miss := 0.0
	if o.measured > o.bound {
		miss = 1
	}
	fair := 1 - o.confidence
	alpha := r.MissRate(o.confidence) + alphaStep*(fair-miss)
	alpha = min(max(alpha, minAlphaRatio*fair), maxAlphaRatio*fair)
	isSame := func(a ConfidenceAlpha) bool { return a.Confidence == o.confidence }
	r.Alphas = replaceLast(r.Alphas, ConfidenceAlpha{o.confidence, alpha}, isSame, maxAlphas)
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

// MissRate returns the share of bounds that may fail so that the confidence is kept.
func (r *Recalibration) MissRate(confidence float64) float64 {
	if r != nil {
		for _, a := range r.Alphas {
			if a.Confidence == confidence {
				return a.Alpha
			}
		}
	}
	return 1 - confidence
}

// Calibrated maps a predicted probability to a calibrated one, so that the level that keeps a
// confidence is mapped to that confidence.
func (r *Recalibration) Calibrated(share, confidence float64) float64 {
	level := 1 - r.MissRate(confidence)
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
	c.recalibration = c.recalibration.with(&predictedRun{
		digest:     p.Regressor,
		kind:       KindOf(&j.Setting),
		predicted:  *p.PredictedSeconds,
		bound:      bound,
		confidence: p.Confidence,
		measured:   j.trainedAt().Sub(j.StartedAt).Seconds(),
	})
}
