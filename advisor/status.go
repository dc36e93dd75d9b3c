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
	if a := j.Advice; a != nil {
		s.Decision = a.Decision
		if now := j.current(); now != nil && j.State == schemas.StateRunning {
			s.Probability = now.Probability
			if now.PredictedSeconds != nil {
				s.PredictedEndAt = instant(a.At.Add(time.Duration(*now.PredictedSeconds * float64(time.Second))))
			}
		}
	}
	return s
}

// current returns the alternative of the last advice that the job runs with.
func (j *Job) current() *schemas.Alternative {
	i := slices.IndexFunc(j.Advice.Alternatives, func(a schemas.Alternative) bool {
		return a.BatchSize == j.Setting.BatchSize && a.CPUs == j.Setting.CPUs
	})
	if i < 0 {
		return nil
	}
	return &j.Advice.Alternatives[i]
}

// instant returns t for JSON; absent if it never was.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// list returns a page of jobs, newest first.
func (c *Cluster) list(q *schemas.JobListRequest) (schemas.JobList, error) {
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
		page.Jobs = append(page.Jobs, j.status())
	}
	return page, nil
}
