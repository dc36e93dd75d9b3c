package evidence

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Evaluation scores predictions of the runs of one subject by other runs.
type Evaluation struct {
	Model   string `json:"model"`
	Dataset string `json:"dataset,omitempty"`
	// Measured scores runs of configurations (for accuracy: batch sizes) with other runs;
	// Unmeasured scores runs whose whole configuration was held out.
	Measured           TimeScore     `json:"measured"`
	Unmeasured         TimeScore     `json:"unmeasured"`
	AccuracyMeasured   AccuracyScore `json:"accuracy_measured"`
	AccuracyUnmeasured AccuracyScore `json:"accuracy_unmeasured"`
}

// TimeScore scores predictions of the epoch seconds of runs; all fields are 0 without runs.
type TimeScore struct {
	Runs int `json:"runs"`
	// RelativeError is the mean of |predicted/measured - 1|.
	RelativeError float64 `json:"relative_error"`
	// LogDensity is the mean log density of the log seconds.
	LogDensity float64 `json:"log_density"`
	// Coverage is the share of runs that took at most the bound for 0.95.
	Coverage float64 `json:"coverage"`
}

// AccuracyScore scores predictions of the accuracies of runs.
type AccuracyScore struct {
	Runs int `json:"runs"`
	// AbsoluteError is the mean over runs of the mean over epochs of |predicted -
	// measured| accuracy, where the accuracy is known.
	AbsoluteError float64 `json:"absolute_error"`
}

const (
	evaluationFolds      = 5
	evaluationConfidence = 0.95
)

// Evaluate predicts each run without its fold: first folds of runs, then folds of configurations.
// It uses the few hyperparameters and variances of h, which was fitted to all runs.
func Evaluate(ctx context.Context, runs []Run, h *Regressor) ([]Evaluation, error) {
	runsOf := bySubject(regrouped(distinct(runs), h.NodeGroups))
	var all []Evaluation
	for i := range h.Subjects {
		s := &h.Subjects[i]
		own := runsOf[subject{s.Model, s.Dataset}]
		e := Evaluation{Model: s.Model, Dataset: s.Dataset}
		for fold := range evaluationFolds {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("evaluate evidence: %w", err)
			}
			s.evaluate(own, leaveRunsOut(own, fold), &e)
			s.evaluate(own, leaveConfigurationsOut(own, fold), &e)
			s.evaluateAccuracy(own, leaveRunsOut(own, fold), &e)
			s.evaluateAccuracy(own, leaveBatchesOut(own, fold), &e)
		}
		all = append(all, e)
	}
	return all, nil
}

// leaveRunsOut reports which of sorted runs belong to a fold. The runs of a configuration are dealt
// to all folds; a configuration with a single run is never held out.
func leaveRunsOut(runs []Run, fold int) []bool {
	out := make([]bool, len(runs))
	for i := 0; i < len(runs); {
		n := i
		for n < len(runs) && runs[n].Configuration == runs[i].Configuration {
			n++
		}
		for k := i; k < n; k++ {
			out[k] = n-i > 1 && k%evaluationFolds == fold
		}
		i = n
	}
	return out
}

func leaveConfigurationsOut(runs []Run, fold int) []bool {
	out, at := make([]bool, len(runs)), 0
	for i := range runs {
		if i > 0 && runs[i].Configuration != runs[i-1].Configuration {
			at++
		}
		out[i] = at%evaluationFolds == fold
	}
	return out
}

func leaveBatchesOut(runs []Run, fold int) []bool {
	seen, out := map[int]int{}, make([]bool, len(runs))
	for i := range runs {
		b := runs[i].BatchSize
		if _, ok := seen[b]; !ok {
			seen[b] = len(seen)
		}
		out[i] = seen[b]%evaluationFolds == fold
	}
	return out
}

// without returns the runs that are not held out.
func without(runs []Run, out []bool) []Run {
	var kept []Run
	for i := range runs {
		if !out[i] {
			kept = append(kept, runs[i])
		}
	}
	return kept
}

// timesWithout returns the predictor of the times of a subject that has not learned from the held-out runs;
// nil if there is none.
func (s *Subject) timesWithout(runs []Run, out []bool) *timePredictor {
	all, _ := measure(without(runs, out))
	if len(all) == 0 {
		return nil
	}
	t := newTimeModel(all, priorVariance(nil))
	t.Hyperparameters = s.Time.Hyperparameters
	t.smooth()
	p, ok := newTimePredictor(t)
	if !ok {
		return nil
	}
	return p
}

// evaluate scores the times of the held-out runs.
func (s *Subject) evaluate(runs []Run, out []bool, e *Evaluation) {
	if s.Time == nil {
		return
	}
	p := s.timesWithout(runs, out)
	if p == nil {
		return
	}
	for i := range runs {
		c, _, timed := runs[i].curve()
		if !out[i] || !timed {
			continue
		}
		times := p.times(&runs[i].Configuration)
		score := &e.Unmeasured
		switch times.support {
		case NeverRun:
			continue
		case Measured:
			score = &e.Measured
		}
		n := c.epochs()
		score.add(times.total(n).distribution(), math.Log(c.sums[n-1]))
	}
}

// add adds a run whose log seconds are y.
func (s *TimeScore) add(d Distribution, y float64) {
	s.Runs++
	n := float64(s.Runs)
	mean := func(m *float64, x float64) { *m += (x - *m) / n }
	mean(&s.RelativeError, math.Abs(math.Expm1(d.Location-y)))
	mean(&s.LogDensity, d.logDensity(y))
	covered := 0.0
	if y <= math.Log(d.Quantile(evaluationConfidence)) {
		covered = 1
	}
	mean(&s.Coverage, covered)
}

// evaluateAccuracy scores the accuracies of the held-out runs.
func (s *Subject) evaluateAccuracy(runs []Run, out []bool, e *Evaluation) {
	if s.Accuracy == nil {
		return
	}
	m := collectRecords(without(runs, out))
	if m == nil {
		return
	}
	m.Prior = s.Accuracy.Prior
	p := newAccuracyPredictor(m)
	for i := range runs {
		left, ok := recordsOf(&runs[i])
		if !out[i] || !ok {
			continue
		}
		score := &e.AccuracyUnmeasured
		if slices.Contains(p.batches, runs[i].BatchSize) {
			score = &e.AccuracyMeasured
		}
		score.add(p, &runs[i], &left)
	}
}

// add adds a run. It compares with the best accuracy up to each epoch.
func (s *AccuracyScore) add(p *accuracyPredictor, r *Run, left *Records) {
	const most = 8 // epochs
	step := max(1, len(r.Epochs)/most)
	sum, n := 0.0, 0.0
	for i := 0; i < len(r.Epochs); i += step {
		e := &r.Epochs[i]
		best, ok := left.at(e.Number)
		if a := p.predict(r.BatchSize, r.NodeType, e.Number); ok && e.HasAccuracy && a.Known {
			sum += math.Abs(a.Mean - best)
			n++
		}
	}
	if n > 0 {
		s.Runs++
		s.AbsoluteError += (sum/n - s.AbsoluteError) / float64(s.Runs)
	}
}
