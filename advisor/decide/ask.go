package decide

import (
	"cmp"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

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
	self, known := member(c, j, now), c.Model(&q)
	batch := int(self.Setting.BatchSize)
	switch {
	case batch == 0 || q.HasUnknownBatchSize():
		q.BatchSizes = []int{batch}
	case !slices.Contains(q.BatchSizes, batch):
		q.BatchSizes = append([]int{batch}, q.BatchSizes...)
	}
	q = q.WithDefaults()
	q.CPUs, q.Epochs = schemas.CPUs{int(j.Setting.CPUs)}, max(int(j.Setting.Epochs),
		int(j.EpochsDone))
	q.Workers = schemas.Workers{int(max(1, j.Setting.Workers))} // a job keeps its workers
	q.Loaders = []int{int(j.Setting.Loaders)}
	a := &Question{
		Request:  q,
		JobID:    j.ID,
		Run:      j.Run,
		Nodes:    j.Setting.Nodes,
		Hardware: j.Hardware,
		Foreign:  self.Foreign,
		Elapsed:  max(0, elapsed),
		Self:     &self,
		Others:   members(c, c.Colocated(j.Setting.Nodes, j.ID, now), now),
		Tried:    known.Configurations,
		Failures: known.Failures,
		Stops:    stopsOf(&q, &known),

		Last: j.Advice,
		WasLikely: j.Advice != nil && j.Advice.Decision == schemas.MeetsSLO &&
			(j.Advice.Run == j.Run || !j.IsAtRisk()), // after a restart warnings are known, advice is not
		MoreLoaders: j.MoreLoaders(),
	}
	a.setStop(cmp.Or(j.Request, &q), &known)
	return a
}

// Ask returns the question of a new request.
func Ask(c *cluster.Cluster, q schemas.JobRequest, now time.Time) *Question {
	return AskOn(c, c.Placement(&q, now), q, now)
}

// AskOn returns the question of a new request that would run on some nodes.
func AskOn(c *cluster.Cluster, nodes []string, q schemas.JobRequest, now time.Time) *Question {
	known := c.Model(&q)
	if q.HasUnknownBatchSize() {
		q.BatchSizes = []int{int(known.OwnBatchSize)}
	}
	if own := known.OwnLoaders; own != nil && slices.Contains(q.Loaders, int(*own)) {
		q.Loaders = []int{int(*own)}
	}
	a := &Question{
		Request:  q,
		JobID:    q.JobID,
		Nodes:    nodes,
		Hardware: c.Hardware(nodes),
		Foreign:  c.Foreign(nodes, now),
		Others:   members(c, c.Colocated(nodes, q.JobID, now), now),
		Tried:    known.Configurations,
		Failures: known.Failures,
		Stops:    stopsOf(&q, &known),
	}
	a.setStop(&q, &known)
	return a
}

// AskQueued returns the question of a queued job that would run on some nodes. The time in the queue counts
// towards its SLO.
func AskQueued(c *cluster.Cluster, nodes []string, j *cluster.Job, now time.Time) *Question {
	q := AskOn(c, nodes, *j.Request, now)
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
		BestAccuracy:   j.BestAccuracy,
		Since:          max(0, now.Sub(j.ProgressAt)),
		Confidence:     schemas.DefaultConfidence,
		ObservedEpochs: j.ObservedEpochs,
		Together:       j.Together,
	}
	if p := j.Promise; j.State == schemas.StateSubmitted && p != nil { // it is about to start
		m.Setting = schemas.Setting{
			Model:     j.Request.Model,
			Dataset:   j.Request.Dataset,
			BatchSize: p.BatchSize,
			CPUs:      p.CPUs,
			Workers:   p.Workers,
			Epochs:    p.Epochs,
			Nodes:     p.Nodes,
		}
		m.Hardware, m.EpochsDone, m.Since, m.ObservedEpochs = c.Hardware(p.Nodes), 0, 0, nil
		m.BestAccuracy = nil
	}
	if m.Foreign = c.ForeignOf(j, now); j.State == schemas.StateSubmitted {
		m.Foreign = c.Foreign(m.Setting.Nodes, now)
	}
	if j.Request != nil {
		m.Confidence = j.Request.Confidence
		m.Together = cmp.Or(m.Together, c.Model(j.Request).FirstReport)
	}
	if d := j.Deadline(); !d.IsZero() {
		m.Left = d.Sub(now)
		m.Left = cmp.Or(m.Left, -1)
	}
	return m
}
