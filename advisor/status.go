package advisor

import (
	"time"

	"courier/schemas"
)

// status returns what is known of the job, as it is told to whoever asks.
func (j *Job) status() schemas.JobStatus {
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
		DeadlineAt: instant(j.deadline()),
		Accuracy:   j.Accuracy,
		MetSLO:     j.MetSLO,
		Reason:     j.Reason,
	}
	if q := j.Submitted; q != nil {
		s.SubmittedAt, s.SLOSeconds = instant(q.At), q.Request.SLO.Seconds()
		if j.Run == 0 {
			s.Model, s.Dataset = q.Request.Model, q.Request.Dataset
			s.Nodes, s.Epochs = q.Advice.Nodes, uint32(q.Request.Epochs)
			s.BatchSize, s.CPUs = q.Advice.Chosen.BatchSize, q.Advice.Chosen.CPUs
		}
	}
	if j.Advice != nil {
		s.Decision = j.Advice.Decision
	}
	return s
}

// draft is the status of a job, for a running one without what is predicted of it now.
type draft struct {
	status   schemas.JobStatus
	question *Question // what is to be predicted; nil: nothing
	setting  schemas.Setting
	atRisk   bool
}

// draft describes a job at a moment; Advisor.complete predicts the rest.
func (c *Cluster) draft(j *Job, now time.Time) draft {
	d := draft{status: j.status()}
	if j.State == schemas.StateRunning {
		d.question, d.setting = c.Again(j, now), j.Setting
		d.atRisk = j.Risk != nil && j.Risk.Run == j.Run && !j.Risk.Cleared
	}
	return d
}

// complete returns the status of a job; of a running one with what is predicted of it
// now, which no event may have reported. It needs no lock.
func (a *Advisor) complete(d *draft, now time.Time) schemas.JobStatus {
	s := d.status
	if d.question == nil {
		return s
	}
	advice := Decide(d.question, *a.regressors.Load(), now)
	s.Decision, s.AtRisk = advice.Decision, d.atRisk
	alt := advice.Running(d.setting.BatchSize, d.setting.CPUs)
	if alt != nil && alt.PredictedSeconds != nil {
		left := time.Duration(*alt.PredictedSeconds * float64(time.Second))
		s.Probability, s.PredictedEndAt = alt.Probability, instant(advice.At.Add(left))
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

// list returns a page of jobs, newest first, and the ID to continue after; "" at the end.
func (c *Cluster) list(q *schemas.JobListRequest, now time.Time) ([]draft, string, error) {
	limit := q.Limit
	if limit == 0 {
		limit = schemas.DefaultPage
	}
	jobs, known := c.newestFirst(q.After, q.State)
	if !known {
		return nil, "", schemas.Invalid("after",
			"no job %q: use the next field of the previous page", q.After)
	}
	var page []draft
	for j := range jobs {
		if len(page) == limit {
			return page, page[limit-1].status.JobID, nil
		}
		page = append(page, c.draft(j, now))
	}
	return page, "", nil
}
