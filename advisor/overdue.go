package advisor

import (
	"time"

	"courier/advisor/decide"
)

// epochsSeen are the epochs of a running job, and when the advisor first saw so many, by its own clock.
type epochsSeen struct {
	run, done uint32
	at        time.Time
}

// overdueQuestions returns the questions that re-predict the running jobs whose next epoch takes twice as
// long as the last one, as far as their runs were not known to be at risk. The caller holds the lock.
func (a *Advisor) overdueQuestions(now time.Time) (all []causedQuestion) {
	seen := make(map[string]epochsSeen, len(a.epochs))
	for j := range a.cluster.Running() {
		s := a.epochs[j.ID]
		if s.run != j.Run || s.done != j.EpochsDone || !a.bus.Connected() {
			s = epochsSeen{j.Run, j.EpochsDone, now}
		}
		seen[j.ID] = s
		isLast := j.EpochsDone >= j.Setting.Epochs
		if decide.IsOverdue(j.ObservedEpochs, now.Sub(s.at)) && !isLast && !j.IsAtRisk() {
			q := decide.AskRunning(a.cluster, j, now)
			q.Self.Since = now.Sub(s.at)
			all = append(all, causedQuestion{q, j.Last})
		}
	}
	a.epochs = seen
	return all
}

// adviseOverdue re-predicts a job whose epoch is overdue. It publishes at most one advice and one warning
// after each event of the job.
func (a *Advisor) adviseOverdue(q causedQuestion, now time.Time) {
	a.publishAdvice(q.Question, decide.Decide(q.Question, *a.regressors.Load(), now), q.cause, "/overdue")
}
