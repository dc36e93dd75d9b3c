package advisor

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// causedQuestion asks about a running job.
type causedQuestion struct {
	*decide.Question
	cause uint64 // sequence of the last event of the job
}

// advise re-predicts a running job. A job that waits for its input, and is not likely to meet an SLO, is
// advised to use more data loaders. With the objective efficiency, it may be advised a faster batch size.
func (a *Advisor) advise(q *decide.Question, cause uint64) {
	r, now := *a.regressors.Load(), a.now()
	advice := decide.Decide(q, r, now)
	isLikely := q.Request.SLO > 0 && decide.ProbabilityOf(advice.Chosen) >= q.Request.Confidence
	if q.MoreLoaders != nil && a.o.MoveCPUs != MovesOff && !isLikely {
		m := *q.MoreLoaders
		m.DryRun = a.o.MoveCPUs != MovesOn
		advice = shares.DecideMove(q, m, r, now)
	} else if a.o.Objective == shares.ObjectiveEfficiency && a.o.MoveCPUs == MovesOn {
		advice = cmp.Or(decide.AdviseFaster(q, advice, r, now), advice)
	}
	a.publishAdvice(q, advice, cause, "")
}

// publishAdvice adds an advice for a running job to the outbox if it differs enough from the last one, and
// its warnings. The suffix of their event IDs distinguishes them from other events with the same cause.
func (a *Advisor) publishAdvice(q *decide.Question, advice *schemas.Advice, cause uint64, suffix string) {
	advice.EventID, advice.CauseSequence = schemas.AdviceID(q.JobID, cause)+suffix, cause
	news, risks := a.newsAndRisks(q, advice, suffix)
	if news {
		a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
		a.outbox.addAdvice(advice)
	}
	a.publishRisks(risks)
}

func (a *Advisor) publishRisks(risks []*schemas.Risk) {
	for _, risk := range risks {
		a.metrics.risks.WithLabelValues(risk.Cause, strconv.FormatBool(risk.Cleared)).Inc()
		a.log.Info("promise at risk", "job_id", risk.JobID, "cleared", risk.Cleared,
			"probability", risk.Probability, "cause", risk.Cause)
		a.outbox.addRisk(risk)
	}
}

// newsAndRisks decides whether an advice is published, and returns the warnings that it causes. All
// are recorded in the state immediately, so that the next event does not repeat them before they
// arrive from the log.
func (a *Advisor) newsAndRisks(
	q *decide.Question, advice *schemas.Advice, suffix string,
) (news bool, risks []*schemas.Risk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.cluster.Job(q.JobID)
	if j == nil || j.IsSettled() {
		return false, nil
	}
	risks = a.newRisks(j, q, advice, suffix)
	next := cluster.Summarize(advice)
	if news = isWorthPublishing(j.Advice, next); news {
		j.Advice = next
	}
	return news, risks
}

// newRisks returns the warnings that an advice causes, and records them in the job. The caller holds the
// lock.
func (a *Advisor) newRisks(
	j *cluster.Job, q *decide.Question, advice *schemas.Advice, suffix string,
) (risks []*schemas.Risk) {
	if risk := decide.Warn(j, q, advice); risk != nil {
		risk.EventID = schemas.RiskID(q.JobID, advice.CauseSequence)
		j.Risk, risks = risk, append(risks, risk)
	}
	if risk := decide.WarnDivergence(j, q, advice); risk != nil {
		risk.EventID = schemas.DivergenceID(q.JobID, advice.CauseSequence)
		j.Divergence, risks = risk, append(risks, risk)
	}
	for _, risk := range risks {
		risk.EventID += suffix
		risk.CauseSequence = advice.CauseSequence
		a.outbox.expectRisk()
	}
	return risks
}

// After each epoch the predicted end moves by about the scatter of epochs divided by the square root of
// the number of observed epochs. With the usual scatter of 5 percent this is less than 2 percent of the
// remaining time.
const (
	minAdviceChange   = 0.05             // of the predicted end, relative to the remaining time
	maxAdviceInterval = 30 * time.Second // until advice with a smaller change is published, too
)

// isWorthPublishing reports whether an advice for a running job differs enough from the last one.
func isWorthPublishing(last, next *cluster.AdviceSummary) bool {
	if last == nil || last.Run != next.Run || last.Decision != next.Decision ||
		last.Action != next.Action || next.At.Sub(last.At) >= maxAdviceInterval {
		return true
	}
	if last.BatchSize != next.BatchSize || last.CPUs != next.CPUs ||
		(last.PredictedSeconds == nil) != (next.PredictedSeconds == nil) {
		return true
	}
	if next.PredictedSeconds == nil {
		return false
	}
	change := predictedEnd(next).Sub(predictedEnd(last)).Seconds()
	return math.Abs(change) >= minAdviceChange**next.PredictedSeconds
}

// predictedEnd returns when the job is predicted to end.
func predictedEnd(s *cluster.AdviceSummary) time.Time {
	return s.At.Add(time.Duration(*s.PredictedSeconds * float64(time.Second)))
}
