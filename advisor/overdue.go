package advisor

import (
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// overdueQuestions returns the questions that re-predict the running jobs that should have ended by now, or
// whose next epoch takes twice as long as the last one, as far as their runs were not known to be at risk.
// The caller holds the lock.
func (a *Advisor) overdueQuestions(now time.Time) (all []causedQuestion) {
	for j := range a.cluster.Running() {
		since := min(now.Sub(j.ProgressAt), now.Sub(a.listeningSince))
		isOver := j.Advice != nil && j.Advice.PredictedSeconds != nil && now.After(predictedEnd(j.Advice))
		isOverdue := isOver || decide.IsOverdue(j.ObservedEpochs, j.Together, since)
		if isOverdue && j.EpochsDone < j.Setting.Epochs && !j.IsAtRisk() {
			q := decide.AskRunning(a.cluster, j, now)
			q.Self.Since = since
			all = append(all, causedQuestion{q, j.Last})
		}
	}
	return all
}

// adviseOverdue re-predicts a job whose epoch is overdue. It publishes at most one advice and one warning
// after each event of the job.
func (a *Advisor) adviseOverdue(q causedQuestion, now time.Time) {
	a.publishAdvice(q.Question, decide.Decide(q.Question, *a.regressors.Load(), now), q.cause, "/overdue")
}

// minFirstEpoch is the share of the first epoch of a run from which its progress counts: the first batches
// are often slower than the others.
const minFirstEpoch = 0.2

// firstEpochQuestions returns the questions at the end of the first epoch of the running jobs that have
// reported their progress within it since an instant, as far as their runs were not known to be at risk.
// The caller holds the lock.
func (a *Advisor) firstEpochQuestions(since, now time.Time) (all []causedQuestion) {
	for j := range a.cluster.Running() {
		within := j.ProgressWithin(now)
		if len(j.ObservedEpochs) == 0 && within.EpochRatio >= minFirstEpoch && j.Within.At.After(since) &&
			!j.IsAtRisk() {
			all = append(all, causedQuestion{decide.AskRunning(a.cluster, j, now).AtEpochEnd(&within), j.Last})
		}
	}
	return all
}

// warnInFirstEpoch publishes at most one warning of a job before the end of its first epoch. That end
// brings its advice.
func (a *Advisor) warnInFirstEpoch(q causedQuestion, now time.Time) {
	advice := decide.Decide(q.Question, *a.regressors.Load(), now)
	advice.CauseSequence = q.cause
	a.mu.Lock()
	var risks []*schemas.Risk
	if j := a.cluster.Job(q.JobID); j != nil && !j.IsSettled() && j.EpochsDone < advice.EpochsDone {
		risks = a.newRisks(j, q.Question, advice, "/within")
	}
	a.mu.Unlock()
	a.publishRisks(risks)
}
