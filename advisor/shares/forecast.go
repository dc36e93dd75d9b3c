package shares

import (
	"cmp"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/speed"
	"courier/schemas"
)

// forecast is an elastic job with its predictions.
type forecast struct {
	*Share
	alternatives map[int]*schemas.Alternative // by CPUs; only those that may be promised from
	actual       int                          // current CPUs
	cpus         int                          // without those by which it has grown by its own epochs
	target       int
	move         policy.Move // to the target
}

// predict predicts a job with each number of CPUs. ok is false if its current rate is unknown.
func (e *Share) predict(r decide.Regressors, now time.Time) (forecast, policy.Job, bool) {
	f := forecast{
		Share:        e,
		alternatives: map[int]*schemas.Alternative{},
		actual:       int(e.Question.Self.Setting.CPUs),
		cpus:         e.base,
		target:       int(e.Question.Self.Setting.CPUs),
	}
	q := e.Question.WithCPUs(e.Counts)
	advice := decide.Decide(q, r, now)
	curve := curveOf(advice, q.Request.BatchSizes[0], f.alternatives)
	_, ok := f.alternatives[e.base]
	return f, policy.Job{
		ID:         e.Question.JobID,
		Submitted:  e.Submitted,
		Deadline:   e.Deadline,
		Confidence: e.Question.Request.Confidence,
		Options:    []policy.Option{{Work: 1, Curve: curve}},
		Units:      e.base,
		Losses:     f.history(),

		Epochs:          int(e.Question.Self.Setting.Epochs),
		HasMoved:        e.movedAfter > 0,
		EpochsSinceMove: int(e.Question.EpochsDone()) - int(e.movedAfter),

		Allowed:  e.Counts,
		Grown:    f.actual - e.base,
		Training: e.training(),
	}, ok
}

// training returns what the job's own epochs show; nil if its CPUs do not limit it. Its processes exchange
// nothing over a network, and an epoch counts as a step with one sample.
func (e *Share) training() *policy.Training {
	if len(e.seen) == 0 {
		return nil
	}
	return &policy.Training{
		Facts: speed.Facts{Architecture: speed.AllReduce, SamplesPerWorker: 1, BytesPerSecond: 1},
		Shape: speed.Shape{Workers: 1, WorkerCores: int(e.Question.Self.Setting.CPUs)},
		Seen:  e.seen,
	}
}

// history returns the losses of the job, with the last one if it is predicted; nil if it has run for two
// epochs without two losses or accuracies.
func (f *forecast) history() *policy.Losses {
	if len(f.losses.Reports) == 0 && f.Question.EpochsDone() >= 2 {
		return nil
	}
	h := f.losses
	alt := f.alternatives[f.cpus]
	if f.isError && alt != nil && alt.PredictedAccuracy != nil {
		final := 1 - *alt.PredictedAccuracy
		h.Final = &final
	}
	return &h
}

// curveOf returns the rates of the alternatives with a batch size, in jobs per second. The rate is
// that of the upper bound, so that a plan keeps the SLO with the requested confidence. A number of
// CPUs that never ran has no rate.
func curveOf(a *schemas.Advice, batch int, known map[int]*schemas.Alternative) policy.Curve {
	var curve policy.Curve
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		seconds := alt.PredictedSeconds
		if a.SLOSeconds > 0 {
			seconds = alt.UpperBoundSeconds
		}
		if int(alt.BatchSize) != batch || alt.Extrapolated || seconds == nil || !(*seconds > 0) {
			continue
		}
		known[int(alt.CPUs)] = alt
		p := policy.CurvePoint{Units: int(alt.CPUs), Rate: 1 / *seconds, Chance: decide.ProbabilityOf(alt)}
		if alt.PredictedSeconds != nil {
			p.MeanRate = 1 / *alt.PredictedSeconds
		}
		curve = append(curve, p)
	}
	slices.SortFunc(curve, func(a, b policy.CurvePoint) int { return cmp.Compare(a.Units, b.Units) })
	return curve
}

// isLikely reports whether the job meets its SLO with a number of CPUs, with at least the probability
// that it was promised. A job without an SLO always does.
func (f *forecast) isLikely(cpus int) bool {
	if f.Deadline.IsZero() {
		return true
	}
	alt := f.alternatives[cpus]
	return alt != nil && decide.ProbabilityOf(alt) >= f.Question.Request.Confidence
}
