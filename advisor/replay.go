package advisor

import (
	"math"
	"time"

	"courier/schemas"
)

// Recall makes the question again that a recorded event answered: a submission,
// an admission, an advice for a running job, or a warning. The cluster is as the log says up to
// the event's cause; the moment follows from what the event says of elapsed time,
// to the nanosecond; the foreign load is the one that the event assumed. It returns nil for any other event, and where the job is not
// known or in another run: the log begins too late, or the event is a late copy.
func (c *Cluster) Recall(e schemas.Event) *Question {
	switch e := e.(type) {
	case *schemas.Submitted:
		return c.Ask(e.Request, e.Advice.At).assume(&e.Advice.Load)
	case *schemas.JobAdmitted:
		return c.recallQueued(e.JobID, e.Advice.At).assume(&e.Advice.Load)
	case *schemas.Advice:
		if e.Action == schemas.ActionStart {
			return c.recallQueued(e.JobID, e.At).assume(&e.Load)
		}
		elapsed := func(*Job) float64 { return e.ElapsedSeconds }
		return c.recallRunning(e.JobID, e.Run, elapsed).assume(&e.Load)
	case *schemas.Risk:
		q := c.recallRunning(e.JobID, e.Run, func(j *Job) float64 {
			if j.Submitted == nil {
				return 0
			}
			return j.Submitted.Request.SLO.Seconds() - e.LeftSeconds
		})
		if j := c.jobs[e.JobID]; j != nil && j.Advice != nil &&
			j.Advice.CauseSequence == e.CauseSequence {
			q = q.assume(&j.Advice.Load)
		}
		return q
	}
	return nil
}

// assume takes the foreign load that a recorded answer assumed. It depends on which samples had
// arrived by then, and the log keeps samples in a stream of their own. Of several nodes the answer
// names the load of one.
func (q *Question) assume(l *schemas.Load) *Question {
	if q == nil || len(q.Nodes) != 1 {
		return q
	}
	q.Foreign = []schemas.Foreign{{CPU: l.ForeignCPURatio, IOWait: l.ForeignIOWaitRatio}}
	return q
}

// Judge says of an advice that was made again what the policy of the recorded one
// says of it, while the jobs wait that the cluster knows of.
func (c *Cluster) Judge(again, recorded *schemas.Advice) {
	switch v := recorded.Admission; {
	case v == nil:
	case recorded.EventID == schemas.AdmittedID(recorded.JobID):
		again.Admission = &schemas.Admission{Policy: v.Policy, Verdict: schemas.Admitted}
	default:
		judge(again, v.Policy, c.waits())
	}
}

// recallQueued asks again about a job that waits.
func (c *Cluster) recallQueued(id string, at time.Time) *Question {
	j := c.jobs[id]
	if j == nil || j.State != schemas.StateQueued {
		return nil
	}
	return c.asked(j, at)
}

// recallRunning asks again about a running job, some seconds after the clock of
// its SLO began.
func (c *Cluster) recallRunning(id string, run uint32, elapsed func(*Job) float64) *Question {
	j := c.jobs[id]
	if j == nil || j.State != schemas.StateRunning || j.Run != run {
		return nil
	}
	begin := j.StartedAt
	if j.Submitted != nil {
		begin = j.Submitted.At
	}
	return c.Again(j, begin.Add(time.Duration(math.Round(elapsed(j)*float64(time.Second)))))
}
