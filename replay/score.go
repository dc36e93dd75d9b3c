package replay

import (
	"context"
	"fmt"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
	"courier/trainer"
)

// RuleScore is the score of a rule on a log. Measured and predicted outcomes are separate,
// because each job ran in one way only.
type RuleScore struct {
	Rule        string `json:"rule"`
	Variant     string `json:"setting,omitempty"` // name of the variant; absent if nothing was changed
	Submissions int    `json:"submissions"`       // with an SLO
	Promised    int    `json:"promised"`
	Refused     int    `json:"refused"`
	Explored    int    `json:"explored"` // without a promise

	// Promises whose job ended by itself and ran as this rule chose. KeptLow and KeptHigh are the
	// 95 % interval of the ratio (Wilson 1927). Accuracy is the mean over jobs that reported one.
	// Null: none was measured.
	Measured           int      `json:"measured"`
	MeasuredKept       int      `json:"measured_kept"`
	MeasuredKeptRatio  *float64 `json:"measured_kept_ratio"`
	MeasuredKeptLow    *float64 `json:"measured_kept_low"`
	MeasuredKeptHigh   *float64 `json:"measured_kept_high"`
	MeasuredAccuracy   *float64 `json:"measured_accuracy"`
	MeasuredCPUSeconds float64  `json:"measured_cpu_seconds"`

	// The other promises, whose outcome the referee predicts.
	Predicted           int     `json:"predicted"`
	PredictedKept       int     `json:"predicted_kept"`
	PredictedCPUSeconds float64 `json:"predicted_cpu_seconds"`

	Unjudged             int      `json:"unjudged"`               // promises that the referee cannot predict
	AllKeptRatio         *float64 `json:"all_kept_ratio"`         // measured and predicted together
	AllPredictedAccuracy *float64 `json:"all_predicted_accuracy"` // of all promises, by the referee
	// AllPredictedRegret is the mean over all promises of the difference in accuracy to the best
	// alternative that would have kept the SLO; all predicted.
	AllPredictedRegret *float64 `json:"all_predicted_regret"`
}

// hindsight holds the measured and predicted outcomes of the submissions of a log.
type hindsight struct {
	submissions []*schemas.Submitted // with an SLO
	outcomes    map[string]advisor.SubmissionOutcome
	predicted   map[string]*schemas.Advice // every alternative, by the referee
	referee     string                     // its description
}

// lookBack fits the referee on the whole log, and lets it predict every alternative of every
// submission under the load at its time.
func (l *Log) lookBack(ctx context.Context) (*hindsight, error) {
	h := &hindsight{
		outcomes:  map[string]advisor.SubmissionOutcome{},
		predicted: map[string]*schemas.Advice{},
	}
	set, err := l.fitReferee(ctx, h)
	if err != nil {
		return nil, err
	}
	cluster, seen := advisor.NewCluster(), map[string]bool{}
	for _, s := range l.steps() {
		e, isSubmission := s.Event.(*schemas.Submitted)
		if isSubmission && s.decide && !seen[e.JobID] && e.Request.SLO > 0 {
			seen[e.JobID] = true
			h.submissions = append(h.submissions, e)
			q := cluster.Ask((&variant{}).request(e), e.Advice.At)
			h.predicted[e.JobID] = advisor.Decide(q, set.advisor(), e.Advice.At)
		}
		if !s.changesState() {
			continue
		}

		j := cluster.Apply(s.Event, s.Sequence, s.StoredAt)
		if j == nil {
			continue
		}
		if o, ok := j.Outcome(); ok {
			h.outcomes[o.JobID] = o
		} else {
			delete(h.outcomes, j.ID) // The job was started again.
		}
	}
	return h, nil
}

// fitReferee fits regressors on all measurements of the log. If these are too few, the last
// champions are the referee.
func (l *Log) fitReferee(ctx context.Context, h *hindsight) (regressorSet, error) {
	past := trainer.NewPast()
	for i := range l.Records {
		past.Add(l.Records[i].Event, l.Records[i].Sequence)
	}
	set, v := regressorSet{}, l.versions()
	for _, target := range schemas.Targets() {
		fitted, err := fitVersion(ctx, past, target, trainer.MethodFamilies)
		if err != nil {
			return nil, err
		}
		if fitted == nil {
			continue
		}
		set[target] = fitted
		if target == schemas.TargetEpochTime {
			h.referee = fmt.Sprintf("regressors fitted on all %d epochs of the log",
				len(past.Examples(target)))
		}
	}

	if set[schemas.TargetEpochTime] == nil && len(l.Records) > 0 {
		set, _ = v.champions(l.Records[len(l.Records)-1].StoredAt) // Verify reports missing files.
		h.referee = "the last champions, because the log has too few examples for a fit"
	}
	return set, nil
}

// fitVersion fits a regressor on the past; nil if there are too few examples.
func fitVersion(
	ctx context.Context, past *trainer.Past, target string, method trainer.FitMethod,
) (*version, error) {
	o := trainer.Options{Seed: 1, Method: method}
	r, err := trainer.Fit(ctx, target, past.Examples(target), o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, nil // There are too few examples.
	}
	p, digest, err := simulate.Reload(r)
	if err != nil {
		return nil, err
	}
	return newVersion(p, digest)
}

// choice is a way to run a job.
type choice struct{ batch, cpus, epochs uint32 }

func choiceOf(a *schemas.Alternative) choice { return choice{a.BatchSize, a.CPUs, a.Epochs} }

// prediction is the predicted outcome of a choice: seconds from start to end, and the measured
// seconds from submission to start.
type prediction struct{ seconds, wait, accuracy float64 }

// predict predicts the outcome of a choice. If the job ran in another way, the prediction is scaled
// by measured / predicted time of that run, because both meet the same neighbours. ok is false if
// the referee cannot predict the choice.
func (h *hindsight) predict(job string, c choice) (f prediction, ok bool) {
	a := h.predicted[job]
	x := a.Running(c.batch, c.cpus)
	if x == nil || x.PredictedSeconds == nil || x.Epochs == 0 {
		return f, false
	}
	f.seconds = *x.PredictedSeconds * float64(c.epochs) / float64(x.Epochs)
	if x.PredictedAccuracy != nil {
		f.accuracy = *x.PredictedAccuracy
	}

	o, ended := h.outcomes[job]
	if !ended || !o.Finished || o.RunSeconds <= 0 {
		return f, true
	}
	f.wait = o.WaitSeconds
	ran := a.Running(o.Ran.BatchSize, o.Ran.CPUs)
	if ran != nil && ran.PredictedSeconds != nil && ran.Epochs == o.Ran.Epochs &&
		*ran.PredictedSeconds > 0 {
		f.seconds *= o.RunSeconds / *ran.PredictedSeconds
	}
	return f, true
}

// score judges the answers of a rule.
func (h *hindsight) score(rule, variant string, answers map[string]*schemas.Advice) RuleScore {
	s := RuleScore{Rule: rule, Variant: variant}
	var accuracy, measured, regret runningMean
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
			regret.add(max(0, h.bestAccuracy(e)-f.accuracy))
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
	s.MeasuredAccuracy = measured.value()
	s.AllPredictedAccuracy, s.AllPredictedRegret = accuracy.value(), regret.value()
	return s
}

// bestAccuracy returns the accuracy of the best alternative that would have kept the SLO; 0 if
// there is none.
func (h *hindsight) bestAccuracy(e *schemas.Submitted) (best float64) {
	a := h.predicted[e.JobID]
	for i := range a.Alternatives {
		f, ok := h.predict(e.JobID, choiceOf(&a.Alternatives[i]))
		if ok && f.wait+f.seconds <= e.Request.SLO.Seconds() {
			best = max(best, f.accuracy)
		}
	}
	return best
}

// runningMean is an arithmetic mean.
type runningMean struct {
	sum float64
	n   int
}

func (m *runningMean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// value returns nil if no number was added.
func (m *runningMean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}
