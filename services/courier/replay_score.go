package main

import (
	"context"
	"fmt"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
	"courier/trainer"
)

// replayScore is how a rule would have done in a past. What was measured and what
// is predicted stand apart: a job ran in one way only.
type replayScore struct {
	Rule        string `json:"rule"`
	Setting     string `json:"setting,omitempty"` // what was changed; absent: nothing
	Submissions int    `json:"submissions"`       // with an SLO
	Promised    int    `json:"promised"`
	Refused     int    `json:"refused"`
	Explored    int    `json:"explored"` // no promise, to learn

	// Measured are promises whose job ran as this rule chose and ended by itself.
	Measured             int      `json:"measured"`
	MeasuredKept         int      `json:"measured_kept"`
	MeasuredKeptRatio    *float64 `json:"measured_kept_ratio"` // null: nothing was measured
	MeasuredKeptLow      *float64 `json:"measured_kept_low"`   // its 95 % interval (Wilson 1927)
	MeasuredKeptHigh     *float64 `json:"measured_kept_high"`
	MeasuredAccuracy     *float64 `json:"measured_accuracy"` // mean of those that told one
	MeasuredCPUSeconds   float64  `json:"measured_cpu_seconds"`
	Predicted            int      `json:"predicted"`      // the other promises, as the referee sees them
	PredictedKept        int      `json:"predicted_kept"` // of these
	PredictedCPUSeconds  float64  `json:"predicted_cpu_seconds"`
	Unjudged             int      `json:"unjudged"`               // promises of which the referee knows nothing
	AllKeptRatio         *float64 `json:"all_kept_ratio"`         // measured and predicted together
	AllPredictedAccuracy *float64 `json:"all_predicted_accuracy"` // of all promises, as the referee predicts it
	// AllPredictedRegret is the mean over all promises of how much more accurate
	// the best alternative is that would have kept the SLO; all predicted.
	AllPredictedRegret *float64 `json:"all_predicted_regret"`
}

// hindsight is what is known of the submissions of a log after its end.
type hindsight struct {
	submissions []*schemas.Submitted // with an SLO
	outcomes    map[string]advisor.Outcome
	predicted   map[string]*schemas.Advice // every alternative, by the referee
	referee     string                     // what it is, for people
}

// lookBack folds the whole log, fits the referee on it, and lets it predict every
// alternative of every submission at the load that it met.
func (l *replayLog) lookBack(ctx context.Context) (*hindsight, error) {
	h := &hindsight{outcomes: map[string]advisor.Outcome{}, predicted: map[string]*schemas.Advice{}}
	set, err := l.fitReferee(ctx, h)
	if err != nil {
		return nil, err
	}
	cluster, seen := advisor.NewCluster(), map[string]bool{}
	for _, s := range l.steps() {
		if e, ok := s.Event.(*schemas.Submitted); ok && !seen[e.JobID] && e.Request.SLO > 0 && s.ask {
			seen[e.JobID] = true
			h.submissions = append(h.submissions, e)
			h.predicted[e.JobID] = advisor.Decide(cluster.Ask((&pastSetting{}).request(e), e.Advice.At), set.advisor(), e.Advice.At)
		}
		if !s.changes() {
			continue
		}
		j := cluster.Apply(s.Event, s.Sequence, s.StoredAt)
		if j == nil {
			continue
		}
		if o, ok := j.Outcome(); ok {
			h.outcomes[o.JobID] = o
		} else {
			delete(h.outcomes, j.ID) // it was started again
		}
	}
	return h, nil
}

// fitReferee fits regressors on all that the log measured; where that is too
// little, the last ones in use judge.
func (l *replayLog) fitReferee(ctx context.Context, h *hindsight) (regressorSet, error) {
	past := trainer.NewPast()
	for i := range l.records {
		past.Add(l.records[i].Event, l.records[i].Sequence)
	}
	set, v := regressorSet{}, l.versions()
	for _, target := range schemas.Targets() {
		examples := past.Examples(target)
		r, err := trainer.Fit(ctx, target, examples, trainer.Options{Seed: 1})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		p, digest, err := simulate.Reload(r)
		if err != nil {
			return nil, err
		}
		if set[target], err = newVersion(p, digest); err != nil {
			return nil, err
		}
		if target == schemas.TargetEpochTime {
			h.referee = fmt.Sprintf("regressors fitted on all %d epochs of the log", len(examples))
		}
	}
	if set[schemas.TargetEpochTime] == nil && len(l.records) > 0 {
		set, _ = v.inUse(l.records[len(l.records)-1].StoredAt) // the verification says what is missing
		h.referee = "the regressors last in use, because the log holds too little to fit any"
	}
	return set, nil
}

// choice is a way to run a job.
type choice struct{ batch, cpus, epochs uint32 }

func choiceOf(a *schemas.Alternative) choice { return choice{a.BatchSize, a.CPUs, a.Epochs} }

// fate is what a choice comes to: seconds from start to end, and the time before.
type fate struct{ seconds, wait, accuracy float64 }

// predict says what a choice would have come to. If the job ran in another way,
// the prediction is corrected by what that run took beyond its own: both met the
// same neighbours. ok is false if the referee knows nothing of it.
func (h *hindsight) predict(job string, c choice) (f fate, ok bool) {
	a := h.predicted[job]
	x := a.Running(c.batch, c.cpus)
	if x == nil || x.PredictedSeconds == nil || x.Epochs == 0 {
		return f, false
	}
	f.seconds = *x.PredictedSeconds * float64(c.epochs) / float64(x.Epochs)
	if x.PredictedAccuracy != nil {
		f.accuracy = *x.PredictedAccuracy
	}
	if o, ended := h.outcomes[job]; ended && o.Finished && o.RunSeconds > 0 {
		f.wait = o.WaitSeconds
		own := a.Running(o.Ran.BatchSize, o.Ran.CPUs)
		if own != nil && own.PredictedSeconds != nil && own.Epochs == o.Ran.Epochs && *own.PredictedSeconds > 0 {
			f.seconds *= o.RunSeconds / *own.PredictedSeconds
		}
	}
	return f, true
}

// score judges the answers of a rule.
func (h *hindsight) score(rule, setting string, answers map[string]*schemas.Advice) replayScore {
	s := replayScore{Rule: rule, Setting: setting}
	var accuracy, measured, regret mean
	for _, e := range h.submissions {
		a := answers[e.JobID]
		if a == nil {
			continue
		}
		s.Submissions++
		switch a.Decision {
		case schemas.MeetsSLO:
		case schemas.Exploring:
			s.Explored++
			continue
		default:
			s.Refused++
			continue
		}
		s.Promised++
		c := choiceOf(a.Chosen)
		f, known := h.predict(e.JobID, c)
		o, ended := h.outcomes[e.JobID]
		switch {
		case ended && c == (choice{o.Ran.BatchSize, o.Ran.CPUs, o.Ran.Epochs}):
			s.Measured++
			s.MeasuredCPUSeconds += float64(c.cpus) * o.RunSeconds
			if o.Kept {
				s.MeasuredKept++
			}
			if o.Accuracy != nil && o.Finished {
				measured.add(*o.Accuracy)
			}
		case known:
			s.Predicted++
			s.PredictedCPUSeconds += float64(c.cpus) * f.seconds
			if f.wait+f.seconds <= e.Request.SLO.Seconds() {
				s.PredictedKept++
			}
		default:
			s.Unjudged++
		}
		if known && f.accuracy > 0 {
			accuracy.add(f.accuracy)
			regret.add(max(0, h.best(e)-f.accuracy))
		}
	}
	if s.Measured > 0 {
		ratio := float64(s.MeasuredKept) / float64(s.Measured)
		low, high := schemas.Wilson(uint64(s.MeasuredKept), uint64(s.Measured))
		s.MeasuredKeptRatio, s.MeasuredKeptLow, s.MeasuredKeptHigh = &ratio, &low, &high
	}
	if judged := s.Measured + s.Predicted; judged > 0 {
		ratio := float64(s.MeasuredKept+s.PredictedKept) / float64(judged)
		s.AllKeptRatio = &ratio
	}
	s.MeasuredAccuracy, s.AllPredictedAccuracy, s.AllPredictedRegret = measured.value(), accuracy.value(), regret.value()
	return s
}

// best is the accuracy of the best alternative that would have kept the SLO, 0 if
// there is none.
func (h *hindsight) best(e *schemas.Submitted) (best float64) {
	a := h.predicted[e.JobID]
	for i := range a.Alternatives {
		if f, ok := h.predict(e.JobID, choiceOf(&a.Alternatives[i])); ok && f.wait+f.seconds <= e.Request.SLO.Seconds() {
			best = max(best, f.accuracy)
		}
	}
	return best
}

// mean adds up numbers.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// value is nil where nothing was added.
func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}
