package decide

import (
	"math"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// Recall returns the question that a recorded event answered: a submission, an admission, an advice
// for a running job, or a warning. The cluster must be in the state after the event's cause. The
// time follows from the elapsed time in the event, to the nanosecond, and the foreign load is taken
// from the event. Recall returns nil for any other event. It also returns nil if the job is unknown
// or in another run, because the log begins too late or the event is a late duplicate.
func Recall(c *cluster.Cluster, e schemas.Event) *Question {
	switch e := e.(type) {
	case *schemas.Submitted:
		nodes := recalledNodes(c, &e.Request, &e.Advice)
		return AskOn(c, nodes, e.Request, e.Advice.At).assume(&e.Advice.Load)
	case *schemas.JobAdmitted:
		return recallQueued(c, e.JobID, &e.Advice).assume(&e.Advice.Load)
	case *schemas.Advice:
		if e.Action == schemas.ActionStart {
			return recallQueued(c, e.JobID, e).assume(&e.Load)
		}
		elapsed := func(*cluster.Job) float64 { return e.ElapsedSeconds }
		return recallRunning(c, e.JobID, e.Run, elapsed).assume(&e.Load)
	case *schemas.Risk:
		q := recallRunning(c, e.JobID, e.Run, func(j *cluster.Job) float64 {
			if j.Request == nil {
				return 0
			}
			return j.Request.SLO.Seconds() - e.LeftSeconds
		})
		if j := c.Job(e.JobID); j != nil && j.Advice != nil &&
			j.Advice.CauseSequence == e.CauseSequence {
			q = q.assume(&j.Advice.Load)
		}
		return q
	}
	return nil
}

// assume replaces the foreign load by the foreign load of a recorded answer. That load depended on
// the samples that had arrived, and another stream stores the samples. The answer has the load of
// one node only, so a question with several nodes is left as it is.
func (q *Question) assume(l *schemas.Load) *Question {
	if q == nil || len(q.Nodes) != 1 {
		return q
	}
	q.Foreign = []schemas.Foreign{{CPU: l.ForeignCPURatio, IOWait: l.ForeignIOWaitRatio}}
	return q
}

// recallQueued returns the question of a queued job.
func recallQueued(c *cluster.Cluster, id string, recorded *schemas.Advice) *Question {
	j := c.Job(id)
	if j == nil || j.State != schemas.StateQueued {
		return nil
	}
	nodes := recalledNodes(c, j.Request, recorded)
	return AskQueued(c, nodes, j, recorded.At)
}

// recalledNodes returns the nodes for which a recorded advice was decided: of a job that was admitted
// by the plan for the CPUs of its nodes, those of the advice, otherwise those of its placement.
func recalledNodes(c *cluster.Cluster, q *schemas.JobRequest, recorded *schemas.Advice) []string {
	if IsAdmittedByCPUs(recorded.Admission) && len(recorded.Nodes) > 0 {
		return recorded.Nodes
	}
	return c.Placement(q, recorded.At)
}

// recallRunning returns the question of a running job some seconds after its SLO began.
func recallRunning(c *cluster.Cluster, id string, run uint32, elapsed func(*cluster.Job) float64) *Question {
	j := c.Job(id)
	if j == nil || j.State != schemas.StateRunning || j.Run != run {
		return nil
	}
	begin := j.StartedAt
	if j.Request != nil {
		begin = j.SubmittedAt
	}
	return AskRunning(c, j, begin.Add(time.Duration(math.Round(elapsed(j)*float64(time.Second)))))
}
