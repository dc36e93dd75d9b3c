package advisor

import (
	"time"

	"courier/advisor/decide"
)

// overdueQuestions returns the questions that re-predict the running jobs whose next epoch takes twice as
// long as the last one, as far as their runs were not known to be at risk. The caller holds the lock.
func (a *Advisor) overdueQuestions(now time.Time) (all []causedQuestion) {
	for j := range a.cluster.Running() {
		since := min(now.Sub(j.ProgressAt), now.Sub(a.listeningSince))
		isLast := j.EpochsDone >= j.Setting.Epochs
		if decide.IsOverdue(j.ObservedEpochs, since) && !isLast && !j.IsAtRisk() {
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
