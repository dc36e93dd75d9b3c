package advisor

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Question is what Decide answers: a request, or the rest of a job that runs.
type Question struct {
	Request  schemas.JobRequest // with its defaults filled in
	JobID    string
	Run      uint32             // 0 before the first start
	Nodes    []string           // where it runs, or would
	Hardware []schemas.Hardware // of those nodes, in their order
	Foreign  []schemas.Foreign  // load of those nodes that is not due to jobs, in their order
	Elapsed  time.Duration      // of the SLO, since submission
	Self     *Member            // what it has done so far; nil before it runs
	Others   []Member           // the running jobs that share its nodes, directly or not
	Tried    []Configuration    // what the log has epochs of, of this model on this dataset
	Record   *Record            // how promises came out so far; nil: none yet

	Threshold float64 // least probability that may be promised, where the confidence is the mean of all promises; 0: the confidence

	Described Description // of the model; the zero value is unknown
}

// Member is a running job.
type Member struct {
	JobID      string
	Setting    schemas.Setting
	Hardware   []schemas.Hardware // of its nodes, in their order
	Foreign    []schemas.Foreign  // load of its nodes that is not due to jobs, in their order
	EpochsDone uint32
	Since      time.Duration // since its last epoch ended, or since it started
	Left       time.Duration // until its deadline; 0: it has none
	Confidence float64       // that its deadline is to be kept with
	Threshold  float64       // least probability that was promised; 0: the confidence

	laps []lap
}

// least is the probability under which nothing is promised.
func (q *Question) least() float64 { return cmp.Or(q.Threshold, q.Request.Confidence) }

// sure is the probability from which on the more accurate alternative is taken
// and not the more likely: halfway from the least to the confidence, for what an
// average has to spare is better spent on promises than on accuracy. A job that
// runs keeps what it was promised.
func (q *Question) sure() float64 {
	if q.Self != nil {
		return q.least()
	}
	return (q.least() + q.Request.Confidence) / 2
}

func (m *Member) least() float64 { return cmp.Or(m.Threshold, m.Confidence) }

func (m *Member) epochsLeft() uint32 {
	return m.Setting.Epochs - min(m.Setting.Epochs, m.EpochsDone)
}

// member describes a running job at a moment.
func (c *Cluster) member(j *Job, now time.Time) Member {
	m := Member{
		JobID:      j.ID,
		Setting:    j.Setting,
		Hardware:   j.Hardware,
		EpochsDone: j.EpochsDone,
		Since:      max(0, now.Sub(j.progressAt)),
		Confidence: schemas.DefaultConfidence,
		laps:       j.laps,
	}
	if p := j.Promise; j.State == schemas.StateSubmitted && p != nil { // about to start
		m.Setting = schemas.Setting{
			Model: p.Model, Dataset: p.Dataset, BatchSize: p.Chosen.BatchSize, CPUs: p.Chosen.CPUs,
			Epochs: p.Chosen.Epochs, Nodes: p.Nodes,
		}
		m.Hardware, m.EpochsDone, m.Since, m.laps = c.fleet.Of(p.Nodes), 0, 0, nil
	}
	if m.Foreign = c.foreignNow(j, now); j.State == schemas.StateSubmitted {
		m.Foreign = c.foreignOf(m.Setting.Nodes, now)
	}
	if j.Submitted != nil {
		m.Confidence = j.Submitted.Request.Confidence
	}
	if j.Promise != nil {
		m.Threshold = j.Promise.Threshold
	}
	if d := j.deadline(); !d.IsZero() {
		m.Left = d.Sub(now)
		if m.Left == 0 {
			m.Left = -1
		}
	}
	return m
}

func (c *Cluster) members(jobs []*Job, now time.Time) []Member {
	all := make([]Member, len(jobs))
	for i, j := range jobs {
		all[i] = c.member(j, now)
	}
	return all
}

// Ask makes the question of a request that comes now.
func (c *Cluster) Ask(q schemas.JobRequest, now time.Time) *Question {
	nodes := c.place(&q, now)
	known := c.modelOf(&q)
	return &Question{
		Request:   q,
		JobID:     q.JobID,
		Nodes:     nodes,
		Hardware:  c.fleet.Of(nodes),
		Foreign:   c.foreignOf(nodes, now),
		Others:    c.members(c.beside(nodes, q.JobID, now), now),
		Tried:     known.configurations,
		Record:    c.sharedRecord(),
		Threshold: c.means.threshold(&q),
		Described: known.described,
	}
}

// Again makes the question of a job that runs.
func (c *Cluster) Again(j *Job, now time.Time) *Question {
	q := schemas.JobRequest{
		JobID: j.ID, Model: j.Setting.Model, Dataset: j.Setting.Dataset,
		Confidence: schemas.DefaultConfidence,
	}
	elapsed := now.Sub(j.StartedAt)
	if j.Submitted != nil {
		q = j.Submitted.Request
		elapsed = now.Sub(j.Submitted.At)
	}
	if !slices.Contains(q.BatchSizes, int(j.Setting.BatchSize)) {
		q.BatchSizes = append([]int{int(j.Setting.BatchSize)}, q.BatchSizes...)
	}
	q = q.WithDefaults()
	q.CPUs, q.Epochs = schemas.CPUs{int(j.Setting.CPUs)}, max(int(j.Setting.Epochs),
		int(j.EpochsDone))
	self := c.member(j, now)
	known := c.modelOf(&q)
	return &Question{
		Request:   q,
		JobID:     j.ID,
		Run:       j.Run,
		Nodes:     j.Setting.Nodes,
		Hardware:  j.Hardware,
		Foreign:   self.Foreign,
		Elapsed:   max(0, elapsed),
		Self:      &self,
		Others:    c.members(c.beside(j.Setting.Nodes, j.ID, now), now),
		Tried:     known.configurations,
		Record:    c.sharedRecord(),
		Threshold: self.Threshold,
		Described: known.described,
	}
}

// keep adds a job that has finished to the record, if it ran as it was advised.
// It is measured from its start: how long its owner let it wait was not predicted.
func (c *Cluster) keep(j *Job) {
	if !j.asAdvised() || j.EpochsDone != j.Setting.Epochs {
		return
	}
	a := j.Promise
	chosen := a.Chosen
	if chosen.PredictedSeconds == nil {
		return
	}
	bound := 0.0
	if chosen.UpperBoundSeconds != nil && a.Decision == schemas.MeetsSLO {
		bound = *chosen.UpperBoundSeconds
	}
	c.learn(&outcome{
		digest:     a.Regressors[schemas.TargetEpochTime],
		kind:       kindOf(&j.Setting),
		predicted:  *chosen.PredictedSeconds,
		bound:      bound,
		confidence: a.Confidence,
		measured:   j.trainedAt().Sub(j.StartedAt).Seconds(),
	})
}

// learn adds an outcome to the record. It copies the record only where a question or a
// snapshot may have kept it: there are none while the log is replayed.
func (c *Cluster) learn(o *outcome) {
	if !o.counts() {
		return
	}
	r := c.record.by(o.digest)
	if r == nil || c.recordShared.Swap(false) {
		r = r.clone()
	}
	r.add(o)
	c.record = r
}

// sharedRecord returns the record to be kept: it will not change.
func (c *Cluster) sharedRecord() *Record {
	if !c.recordShared.Load() {
		c.recordShared.Store(true)
	}
	return c.record
}
