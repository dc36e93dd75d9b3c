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
	cpus         int                          // current ones
	target       int
	move         policy.Move // to the target
}

// predict predicts a job with each number of CPUs. ok is false if its current rate is unknown.
func (e *Share) predict(r decide.Regressors, isFull bool, now time.Time) (forecast, policy.Job, bool) {
	f := forecast{
		Share:        e,
		alternatives: map[int]*schemas.Alternative{},
		cpus:         int(e.Question.Self.Setting.CPUs),
		target:       int(e.Question.Self.Setting.CPUs),
	}
	q := e.Question.WithCPUs(e.Counts)
	advice := decide.Decide(q, r, now)
	curve := curveOf(advice, q.Request.BatchSizes[0], f.alternatives)
	_, ok := f.alternatives[f.cpus]
	return f, policy.Job{
		ID:         e.Question.JobID,
		Submitted:  e.Submitted,
		Deadline:   e.Deadline,
		Confidence: e.Question.Request.Confidence,
		Options:    []policy.Option{{Work: 1, Curve: curve}},
		Units:      f.cpus,
		Losses:     f.history(),

		Epochs:          int(e.Question.Self.Setting.Epochs),
		HasMoved:        e.movedAfter > 0,
		EpochsSinceMove: int(e.Question.EpochsDone()) - int(e.movedAfter),

		Allowed:  e.Counts,
		Training: f.training(isFull),
	}, ok
}

// training returns what the epochs of the job show; nil if they show nothing yet. Its processes exchange
// nothing over a network, and an epoch counts as a step with one sample. Runs that have ended count for the
// numbers of CPUs that this one has not had, unless jobs wait for each other: then the predicted times
// contain these waits.
func (f *forecast) training(isFull bool) *policy.Training {
	if f.window == nil {
		return nil
	}
	own, mean := speed.NewShapeTime(f.window), speed.MeanOf(f.window)
	if mean.IsContended() {
		// Its CPU time is that of an epoch with one CPU.
		own.Shape.WorkerCores, own.StepSeconds = 1, own.ComputeCoreSeconds
	}
	seen := append(slices.Clone(f.former), own)
	if !isFull && !mean.IsContended() {
		seen = f.withPastRuns(seen)
	}
	t := &policy.Training{
		Facts:      speed.Facts{SamplesPerWorker: 1, BytesPerSecond: 1},
		Shape:      speed.Shape{Workers: 1, WorkerCores: f.cpus},
		Window:     f.window,
		Bottleneck: f.bottleneck,
	}
	if t.Model = speed.Learn(t.Facts, seen, nil, speed.Shape{}); t.Model == nil {
		return nil
	}
	return t
}

// withPastRuns adds the times for the numbers of CPUs that the job has not had, before its own: they differ
// from its own time as the predictions do. Without a prediction for its current CPUs they are unknown. Its
// own epochs correct each prediction, and would count the lack of CPUs as a slow job.
func (f *forecast) withPastRuns(seen []speed.ShapeTime) []speed.ShapeTime {
	current, own := f.alternatives[f.cpus], seen[len(seen)-1]
	if current == nil || current.PredictedSeconds == nil {
		return seen
	}
	for _, cpus := range f.Counts {
		isOwn := slices.ContainsFunc(seen, func(t speed.ShapeTime) bool { return t.Shape.WorkerCores == cpus })
		alt := f.alternatives[cpus]
		if isOwn || alt == nil || alt.PredictedSeconds == nil {
			continue
		}
		past := speed.ShapeTime{Shape: speed.Shape{Workers: 1, WorkerCores: cpus}, Reports: 1}
		past.StepSeconds = own.StepSeconds * *alt.PredictedSeconds / *current.PredictedSeconds
		seen = slices.Insert(seen, 0, past)
	}
	return seen
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
		h.Final = new(1 - *alt.PredictedAccuracy)
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
