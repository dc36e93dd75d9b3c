package advisor

import (
	"context"
	"slices"
	"strings"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

func (a *Advisor) status(ctx context.Context, q *schemas.JobStatusRequest) (any, error) {
	j, err := a.job(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	now := a.now()
	a.mu.RLock()
	d := draftStatus(a.cluster, j, now)
	a.mu.RUnlock()
	return a.complete(&d, now), nil
}

// withLesson adds why the last run of a job is not learned from.
func (a *Advisor) withLesson(s schemas.JobStatus) schemas.JobStatus {
	s.NotLearned = a.regressors.Load().NotLearned(s.JobID, s.Run)
	return s
}

// list returns a page of jobs. Running jobs are re-predicted without holding the lock, so that a
// long page does not delay events.
func (a *Advisor) list(_ context.Context, q *schemas.JobListRequest) (any, error) {
	now := a.now()
	a.mu.RLock()
	drafts, next, err := list(a.cluster, q, now)
	totals := a.cluster.CountByState()
	a.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	page := schemas.JobList{Jobs: make([]schemas.JobStatus, 0, len(drafts)), Next: next, Totals: totals}
	for i := range drafts {
		page.Jobs = append(page.Jobs, a.complete(&drafts[i], now))
	}
	return page, nil
}

// statusOf returns the reply of job.status without new predictions.
func statusOf(j *cluster.Job) schemas.JobStatus {
	s := schemas.JobStatus{
		JobID:      j.ID,
		State:      j.State,
		User:       j.User,
		Model:      j.Setting.Model,
		Dataset:    j.Setting.Dataset,
		Nodes:      j.Setting.Nodes,
		BatchSize:  j.Setting.BatchSize,
		CPUs:       j.Setting.CPUs,
		Epochs:     j.Setting.Epochs,
		EpochsDone: j.EpochsDone,
		Run:        j.Run,
		StartedAt:  instant(j.StartedAt),
		EndedAt:    instant(j.EndedAt),
		DeadlineAt: instant(j.Deadline()),
		Bottleneck: j.Bottleneck(),
		Accuracy:   j.Accuracy,
		Phases:     j.Phases,
		MetSLO:     j.MetSLO,
		Incomplete: j.IsIncomplete(),
		Reason:     j.Reason,
	}
	if j.State == schemas.StateRunning {
		s.LastSeenAt = instant(j.LastSeen.UTC())
	}
	if q := j.Request; q != nil {
		s.SubmittedAt, s.SLOSeconds = instant(j.SubmittedAt), q.SLO.Seconds()
		if j.Run == 0 {
			s.Model, s.Dataset, s.Epochs = q.Model, q.Dataset, uint32(q.Epochs)
		}
	}
	if a := j.Advice; a != nil {
		s.Decision = a.Decision
		if j.Run == 0 {
			s.Nodes, s.BatchSize, s.CPUs = a.Nodes, a.BatchSize, a.CPUs
		}
	}
	return s
}

// statusDraft is the status of a job, with the question that predicts the rest of a running job.
type statusDraft struct {
	status   schemas.JobStatus
	question *decide.Question // nil for a job that does not run
	setting  schemas.Setting
	atRisk   bool
}

// draftStatus returns the status of a job and, if it runs, the question for complete.
func draftStatus(c *cluster.Cluster, j *cluster.Job, now time.Time) statusDraft {
	d := statusDraft{status: statusOf(j)}
	if j.State == schemas.StateRunning {
		d.status.EpochProgress = j.ProgressWithin(now)
		d.question, d.setting = decide.AskRunning(c, j, now), j.Setting
		d.atRisk = j.IsAtRisk()
	}
	return d
}

// complete returns the status with current predictions for a running job. It needs no lock.
func (a *Advisor) complete(d *statusDraft, now time.Time) schemas.JobStatus {
	s := a.withLesson(d.status)
	if d.question == nil {
		return s
	}
	regressors := *a.regressors.Load()
	advice, from := decide.Decide(d.question, regressors, now), now
	alt := advice.Running(d.setting.BatchSize, d.setting.CPUs)
	if w := &s.EpochProgress; w.EpochSeconds > 0 && (alt == nil || alt.PredictedSeconds == nil) {
		advice = decide.Decide(d.question.AtEpochEnd(w), regressors, now)
		alt = advice.Running(d.setting.BatchSize, d.setting.CPUs)
		from = now.Add(time.Duration(w.LeftSeconds() * float64(time.Second)))
	}
	s.Decision, s.AtRisk = advice.Decision, d.atRisk
	if advice.Action != schemas.ActionKeep {
		s.Proposal = advice.Message
	}
	if alt != nil && alt.PredictedSeconds != nil {
		left := time.Duration(*alt.PredictedSeconds * float64(time.Second))
		s.Probability, s.PredictedEndAt = alt.Probability, instant(from.Add(left))
	}
	return s
}

// instant returns a pointer to t for JSON, or nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// maxSearched bounds the jobs that one request searches, because ended jobs are unpacked for it.
const maxSearched = 5000

// list returns a page of jobs, newest first, and the ID after which the next page begins; "" at the
// end. A page of a search ends after maxSearched jobs.
func list(c *cluster.Cluster, q *schemas.JobListRequest, now time.Time) ([]statusDraft, string, error) {
	limit := q.Limit
	if limit == 0 {
		limit = schemas.DefaultPage
	}
	jobs, known := c.NewestFirst(q.After, q.State)
	if !known {
		return nil, "", schemas.Invalid("after",
			"no job %q: use the next field of the previous page", q.After)
	}
	var page []statusDraft
	last, searched := "", 0
	isSearch := q.Search != "" || q.User != "" || q.Model != "" || q.Node != "" || q.AtRisk
	for j := range jobs {
		if len(page) == limit || searched == maxSearched {
			return page, last, nil
		}
		last = j.ID
		if isSearch {
			searched++
			if !selects(q, j) {
				continue
			}
		}
		page = append(page, draftStatus(c, j, now))
	}
	return page, "", nil
}

// selects reports whether a request asks for a job, other than by its state.
func selects(q *schemas.JobListRequest, j *cluster.Job) bool {
	s, search := statusOf(j), strings.ToLower(q.Search)
	names := append([]string{s.JobID, s.Model, s.Dataset, s.User}, s.Nodes...)
	return (q.User == "" || q.User == s.User) && (q.Model == "" || q.Model == s.Model) &&
		(q.Node == "" || slices.Contains(s.Nodes, q.Node)) && (!q.AtRisk || j.IsAtRisk()) &&
		slices.ContainsFunc(names, func(name string) bool { return strings.Contains(strings.ToLower(name), search) })
}

// scoreReply answers job.score.
func (a *Advisor) scoreReply(context.Context, *schemas.ScoreRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Score(), nil
}
