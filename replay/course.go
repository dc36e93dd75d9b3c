package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"courier/schemas"
)

// jobCourse is a job of the log with its whole course.
type jobCourse struct {
	started *schemas.Started
	seconds float64 // from the start to the end
	allowed float64 // seconds from the start to the deadline or the time limit; 0: none
	late    bool
	judged  bool // it finished, or was late
}

func coursesOf(events []schemas.Event) map[runIdentity]*jobCourse {
	jobs, requests := map[runIdentity]*jobCourse{}, map[string]*schemas.Submitted{}
	for _, e := range events {
		switch e := e.(type) {
		case *schemas.Submitted:
			requests[e.JobID] = e
		case *schemas.Started:
			jobs[runIdentity{e.JobID, e.Run}] = &jobCourse{started: e}
		case *schemas.Ended:
			if j := jobs[runIdentity{e.JobID, e.Run}]; j != nil {
				j.end(e, requests[e.JobID])
			}
		}
	}
	return jobs
}

// end sets how long the run took, how long it was allowed to take, and whether it was late.
func (j *jobCourse) end(e *schemas.Ended, q *schemas.Submitted) {
	j.seconds = cmp.Or(e.DurationSeconds, e.At.Sub(j.started.At).Seconds())
	j.allowed = j.started.LimitSeconds
	if q != nil && q.Request.SLO > 0 {
		left := q.At.Add(time.Duration(q.Request.SLO)).Sub(j.started.At).Seconds()
		if j.allowed == 0 || left < j.allowed {
			j.allowed = max(left, 0)
		}
	}
	// A batch system ends a job some seconds after its limit, never before it.
	j.late = j.seconds >= j.allowed && (e.Outcome == schemas.EventFinished ||
		e.Outcome == schemas.EventFailed && j.started.LimitSeconds > 0)
	j.judged = j.late || e.Outcome == schemas.EventFinished
}

func modelOf(s *schemas.Started) string { return schemas.ModelLevel(s.Model, s.Dataset) }

// request returns the request of a job with a choice of the batch sizes that had run before.
func (j *jobCourse) request(sizes map[int]bool, confidence float64) schemas.JobRequest {
	s := j.started
	choice := maps.Clone(sizes)
	if choice == nil {
		choice = map[int]bool{}
	}
	choice[int(s.BatchSize)] = true
	batches := slices.Sorted(maps.Keys(choice))
	return schemas.JobRequest{
		Model: s.Model, Dataset: s.Dataset, Epochs: int(s.Epochs), CPUs: schemas.CPUs{int(s.CPUs)},
		BatchSizes: batches[:min(len(batches), schemas.MaxCandidates)], Nodes: s.Nodes,
		SLO: schemas.Duration(j.allowed * float64(time.Second)), Confidence: confidence,
	}.WithDefaults()
}

// scaled returns the predicted seconds of an alternative, scaled by the measured and the predicted
// time of the job as it ran: both meet the same neighbours. A job that was stopped ran for at least
// its time. Nil: unknown.
func (j *jobCourse) scaled(own, chosen *schemas.Alternative) *float64 {
	if chosen == nil || chosen.PredictedSeconds == nil {
		return nil
	}
	seconds := *chosen.PredictedSeconds
	if own != nil && own.PredictedSeconds != nil && *own.PredictedSeconds > 0 {
		ratio := j.seconds / *own.PredictedSeconds
		if ratio > 1 || !j.late {
			seconds *= ratio
		}
	}
	return &seconds
}
