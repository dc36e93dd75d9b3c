package advisor

import (
	"slices"
	"time"

	"courier/schemas"
)

// status returns what is known of the job, as it is told to whoever asks.
func (j *Job) status() schemas.JobStatus {
	s := schemas.JobStatus{JobID: j.ID, State: j.State, User: j.User, Model: j.Setting.Model, Nodes: j.Setting.Nodes, BatchSize: j.Setting.BatchSize,
		CPUs: j.Setting.CPUs, Epochs: j.Setting.Epochs, EpochsDone: j.EpochsDone, Run: j.Run, StartedAt: instant(j.StartedAt), EndedAt: instant(j.EndedAt),
		DeadlineAt: instant(j.deadline()), Accuracy: j.Accuracy, MetSLO: j.MetSLO, Reason: j.Reason}
	if q := j.Submitted; q != nil {
		s.SubmittedAt, s.SLOSeconds = instant(q.At), q.Request.SLO.Seconds()
		if j.Run == 0 {
			s.Model, s.Nodes, s.Epochs = q.Request.Model, q.Advice.Nodes, uint32(q.Request.Epochs)
			s.BatchSize, s.CPUs = q.Advice.Chosen.BatchSize, q.Advice.Chosen.CPUs
		}
	}
	if j.Advice != nil {
		s.Decision = j.Advice.Decision
	}
	return s
}

// statusOf is the status of a job; of a running one with what is predicted of it
// now, which no event may have told.
func (a *Advisor) statusOf(j *Job) schemas.JobStatus {
	s := j.status()
	if j.State != schemas.StateRunning {
		return s
	}
	advice := Decide(a.cluster.Again(j, time.Now().UTC()), *a.regressors.Load(), time.Now().UTC())
	s.Decision, s.AtRisk = advice.Decision, j.Risk != nil && j.Risk.Run == j.Run && !j.Risk.Cleared
	if now := advice.Running(j.Setting.BatchSize, j.Setting.CPUs); now != nil && now.PredictedSeconds != nil {
		s.Probability = now.Probability
		s.PredictedEndAt = instant(advice.At.Add(time.Duration(*now.PredictedSeconds * float64(time.Second))))
	}
	return s
}

// instant returns t for JSON; absent if it never was.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// list returns a page of jobs, newest first.
func (c *Cluster) list(q *schemas.JobListRequest, status func(*Job) schemas.JobStatus) (schemas.JobList, error) {
	limit := q.Limit
	if limit == 0 {
		limit = schemas.DefaultPage
	}
	i := len(c.order) - 1
	if q.After != "" {
		last := c.jobs[q.After]
		if last == nil {
			return schemas.JobList{}, schemas.Invalid("after", "no job %q: give the next field of the page before", q.After)
		}
		i = slices.Index(c.order, last) - 1
	}
	page := schemas.JobList{Jobs: []schemas.JobStatus{}}
	for ; i >= 0; i-- {
		j := c.order[i]
		if q.State != "" && j.State != q.State {
			continue
		}
		if len(page.Jobs) == limit {
			page.Next = page.Jobs[limit-1].JobID
			break
		}
		page.Jobs = append(page.Jobs, status(j))
	}
	return page, nil
}
