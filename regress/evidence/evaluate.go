package evidence

import "math"

// evaluationFolds is the number of parts into which the runs of each configuration are divided.
const evaluationFolds = 5

// evaluate predicts each run without its fold, if its configuration (for accuracies: its batch size) has
// runs in others. It uses the few hyperparameters of the subject, which was fitted to all runs.
func (s *Subject) evaluate(runs []Run) {
	for fold := range evaluationFolds {
		out := leaveRunsOut(runs, fold)
		s.evaluateTimes(runs, out)
		s.evaluateAccuracies(runs, out)
	}
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
	if s.Time == nil || len(all) == 0 {
		return nil
	}
	t := newTimeModel(all)
	t.Hyperparameters = s.Time.Hyperparameters
	t.smooth()
	p, _ := newTimePredictor(t)
	return p
}

// evaluateTimes adds the errors of the times of the held-out runs.
func (s *Subject) evaluateTimes(runs []Run, out []bool) {
	p := s.timesWithout(runs, out)
	if p == nil {
		return
	}
	for i := range runs {
		c, _, timed := runs[i].curve()
		times := p.times(&runs[i].Configuration)
		if !out[i] || !timed || times.support != Measured {
			continue
		}
		n := c.epochs()
		s.HeldOutTimes.add(1, math.Abs(times.seconds(n)/c.sums[n-1]-1))
	}
}

// evaluateAccuracies adds the errors of the accuracies of the held-out runs. They are compared with the
// best accuracy up to each epoch.
func (s *Subject) evaluateAccuracies(runs []Run, out []bool) {
	m := collectRecords(without(runs, out))
	if m == nil {
		return
	}
	p := newAccuracyPredictor(m)
	for i := range runs {
		r := &runs[i]
		records, ok := recordsOf(r)
		if !out[i] || !ok {
			continue
		}
		step := max(1, len(r.Epochs)/8) // about eight epochs
		var run HeldOut
		for k := 0; k < len(r.Epochs); k += step {
			e := &r.Epochs[k]
			best, ok := records.at(e.Number)
			a := p.predict(r.BatchSize, e.Number)
			if ok && e.HasAccuracy && a.Known && a.Support == Measured {
				run.add(1, math.Abs(a.Mean-best))
			}
		}
		if run.Runs > 0 {
			s.HeldOutAccuracies.add(1, run.Error)
		}
	}
}
