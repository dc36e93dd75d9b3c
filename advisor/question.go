package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// Question is the input of Decide: a request, or a running job that is re-predicted.
type Question struct {
	Request       schemas.JobRequest // with defaults
	JobID         string
	Run           uint32                 // 0 before the first start
	Nodes         []string               // that the job runs on, or would
	Hardware      []schemas.Hardware     // of Nodes, in the same order
	Foreign       []schemas.Foreign      // load of Nodes that no job causes, in the same order
	Elapsed       time.Duration          // part of the SLO that has passed since submission
	Self          *Member                // progress of the job; nil before it runs
	Others        []Member               // co-located jobs, directly or through other jobs
	Tried         []cluster.BatchAndCPUs // with epochs of this model on this dataset in the log
	Recalibration *cluster.Recalibration // by the outcomes of past promises; nil if there are none

	// notGranted are numbers of CPUs that cannot be chosen. The answer lists them last.
	notGranted []int
}

// Member is a running job, as a Question describes it.
type Member struct {
	JobID      string
	Setting    schemas.Setting
	Hardware   []schemas.Hardware // of Setting.Nodes, in the same order
	Foreign    []schemas.Foreign  // load of these nodes that no job causes
	EpochsDone uint32
	Since      time.Duration // since the end of its last epoch, or since its start
	Left       time.Duration // until its deadline; 0 if it has none
	Confidence float64       // of its SLO

	ObservedEpochs []cluster.ObservedEpoch // the last ones, which correct its prediction
}

func (q *Question) epochsDone() uint32 {
	if q.Self == nil {
		return 0
	}
	return q.Self.EpochsDone
}

// epochsLeft returns the number of epochs that the job may still run.
func (q *Question) epochsLeft() uint32 {
	all := uint32(cmp.Or(q.Request.Epochs, q.Request.MaxEpochs))
	return all - min(all, q.epochsDone())
}

// left returns the seconds until the end of the SLO, if there is one.
func (q *Question) left() float64 { return q.Request.SLO.Seconds() - q.Elapsed.Seconds() }

// isCurrent reports whether a running job already has the batch size and CPUs of the alternative.
func (q *Question) isCurrent(alt *schemas.Alternative) bool {
	return q.Self != nil && alt.BatchSize == q.Self.Setting.BatchSize &&
		alt.CPUs == q.Self.Setting.CPUs
}

func (m *Member) epochsLeft() uint32 {
	return m.Setting.Epochs - min(m.Setting.Epochs, m.EpochsDone)
}

// AskRunning returns the question that re-predicts a running job.
func AskRunning(c *cluster.Cluster, j *cluster.Job, now time.Time) *Question {
	q := schemas.JobRequest{
		JobID: j.ID, Model: j.Setting.Model, Dataset: j.Setting.Dataset,
		Confidence: schemas.DefaultConfidence,
	}
	elapsed := now.Sub(j.StartedAt)
	if j.Request != nil {
		q = *j.Request
		elapsed = now.Sub(j.SubmittedAt)
	}
	if !slices.Contains(q.BatchSizes, int(j.Setting.BatchSize)) {
		q.BatchSizes = append([]int{int(j.Setting.BatchSize)}, q.BatchSizes...)
	}
	q = q.WithDefaults()
	q.CPUs, q.Epochs = schemas.CPUs{int(j.Setting.CPUs)}, max(int(j.Setting.Epochs),
		int(j.EpochsDone))
	self := member(c, j, now)
	known := c.Model(&q)
	return &Question{
		Request:       q,
		JobID:         j.ID,
		Run:           j.Run,
		Nodes:         j.Setting.Nodes,
		Hardware:      j.Hardware,
		Foreign:       self.Foreign,
		Elapsed:       max(0, elapsed),
		Self:          &self,
		Others:        members(c, c.Colocated(j.Setting.Nodes, j.ID, now), now),
		Tried:         known.Configurations,
		Recalibration: c.Recalibration(),
	}
}

// Ask returns the question of a new request.
func Ask(c *cluster.Cluster, q schemas.JobRequest, now time.Time) *Question {
	return askOn(c, c.Placement(&q, now), q, now)
}

// askOn returns the question of a new request that would run on some nodes.
func askOn(c *cluster.Cluster, nodes []string, q schemas.JobRequest, now time.Time) *Question {
	known := c.Model(&q)
	return &Question{
		Request:       q,
		JobID:         q.JobID,
		Nodes:         nodes,
		Hardware:      c.Hardware(nodes),
		Foreign:       c.Foreign(nodes, now),
		Others:        members(c, c.Colocated(nodes, q.JobID, now), now),
		Tried:         known.Configurations,
		Recalibration: c.Recalibration(),
	}
}

// AskQueued returns the question of a queued job. The time in the queue counts towards its SLO.
func AskQueued(c *cluster.Cluster, j *cluster.Job, now time.Time) *Question {
	return askQueuedOn(c, c.Placement(j.Request, now), j, now)
}

// askQueuedOn returns the question of a queued job that would run on some nodes.
func askQueuedOn(c *cluster.Cluster, nodes []string, j *cluster.Job, now time.Time) *Question {
	q := askOn(c, nodes, *j.Request, now)
	q.Elapsed = max(0, now.Sub(j.SubmittedAt))
	return q
}

func members(c *cluster.Cluster, jobs []*cluster.Job, now time.Time) []Member {
	all := make([]Member, len(jobs))
	for i, j := range jobs {
		all[i] = member(c, j, now)
	}
	return all
}

// member describes a job that runs, or is about to start.
func member(c *cluster.Cluster, j *cluster.Job, now time.Time) Member {
	m := Member{
		JobID:          j.ID,
		Setting:        j.Setting,
		Hardware:       j.Hardware,
		EpochsDone:     j.EpochsDone,
		Since:          max(0, now.Sub(j.ProgressAt)),
		Confidence:     schemas.DefaultConfidence,
		ObservedEpochs: j.ObservedEpochs,
	}
	if p := j.Promise; j.State == schemas.StateSubmitted && p != nil { // it is about to start
		m.Setting = schemas.Setting{
			Model: j.Request.Model, Dataset: j.Request.Dataset, BatchSize: p.BatchSize, CPUs: p.CPUs,
			Epochs: p.Epochs, Nodes: p.Nodes,
		}
		m.Hardware, m.EpochsDone, m.Since, m.ObservedEpochs = c.Hardware(p.Nodes), 0, 0, nil
	}
	if m.Foreign = c.ForeignOf(j, now); j.State == schemas.StateSubmitted {
		m.Foreign = c.Foreign(m.Setting.Nodes, now)
	}
	if j.Request != nil {
		m.Confidence = j.Request.Confidence
	}
	if d := j.Deadline(); !d.IsZero() {
		m.Left = d.Sub(now)
		if m.Left == 0 {
			m.Left = -1
		}
	}
	return m
}

// Watch re-predicts every job that an event affects. It records the resulting warnings and
// all-clears in the cluster, as Apply does, and returns them. j is the result of Apply for the
// event. Replays and simulations call it; an Advisor does the same after each event.
func Watch(
	c *cluster.Cluster, e schemas.Event, j *cluster.Job, cause uint64, r Regressors, now time.Time,
) []*schemas.Risk {
	var risks []*schemas.Risk
	for _, j := range c.Affected(e, j, now) {
		q := AskRunning(c, j, now)
		advice := Decide(q, r, now)
		advice.CauseSequence = cause
		if risk := warn(j, q, advice); risk != nil {
			risk.EventID, risk.CauseSequence = schemas.RiskID(j.ID, cause), cause
			j.Risk = risk
			risks = append(risks, risk)
		}
	}
	return risks
}

// Recall returns the question that a recorded event answered: a submission, an admission, an advice
// for a running job, or a warning. The cluster must be in the state after the event's cause. The
// time follows from the elapsed time in the event, to the nanosecond, and the foreign load is taken
// from the event. Recall returns nil for any other event. It also returns nil if the job is unknown
// or in another run, because the log begins too late or the event is a late duplicate.
func Recall(c *cluster.Cluster, e schemas.Event) *Question {
	switch e := e.(type) {
	case *schemas.Submitted:
		nodes := recalledNodes(c, &e.Request, &e.Advice)
		return askOn(c, nodes, e.Request, e.Advice.At).assume(&e.Advice.Load)
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
		if j := c.Live(e.JobID); j != nil && j.Advice != nil &&
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
	j := c.Live(id)
	if j == nil || j.State != schemas.StateQueued {
		return nil
	}
	nodes := recalledNodes(c, j.Request, recorded)
	return askQueuedOn(c, nodes, j, recorded.At)
}

// recalledNodes returns the nodes for which a recorded advice was decided: of a job that was admitted
// by the plan for the CPUs of its nodes, those of the advice, otherwise those of its placement.
func recalledNodes(c *cluster.Cluster, q *schemas.JobRequest, recorded *schemas.Advice) []string {
	if isAdmittedByCPUs(recorded.Admission) && len(recorded.Nodes) > 0 {
		return recorded.Nodes
	}
	return c.Placement(q, recorded.At)
}

// recallRunning returns the question of a running job some seconds after its SLO began.
func recallRunning(c *cluster.Cluster, id string, run uint32, elapsed func(*cluster.Job) float64) *Question {
	j := c.Live(id)
	if j == nil || j.State != schemas.StateRunning || j.Run != run {
		return nil
	}
	begin := j.StartedAt
	if j.Request != nil {
		begin = j.SubmittedAt
	}
	return AskRunning(c, j, begin.Add(time.Duration(math.Round(elapsed(j)*float64(time.Second)))))
}
