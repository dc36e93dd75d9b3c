package advisor

import (
	"cmp"
	"math"
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

func (q *Question) epochsDone() uint32 {
	if q.Self == nil {
		return 0
	}
	return q.Self.EpochsDone
}

// left returns the seconds that the SLO leaves; only where there is one.
func (q *Question) left() float64 { return q.Request.SLO.Seconds() - q.Elapsed.Seconds() }

// runs reports whether a job runs with an alternative already.
func (q *Question) runs(alt *schemas.Alternative) bool {
	return q.Self != nil && alt.BatchSize == q.Self.Setting.BatchSize
}

func (m *Member) least() float64 { return cmp.Or(m.Threshold, m.Confidence) }

func (m *Member) epochsLeft() uint32 {
	return m.Setting.Epochs - min(m.Setting.Epochs, m.EpochsDone)
}

// touched returns the running jobs that an event about a job calls to predict
// again: all on its nodes if it came or went, itself after an epoch.
func (c *Cluster) touched(e schemas.Event, j *Job, now time.Time) []*Job {
	if j == nil {
		return nil
	}
	jobs := []*Job{j}
	switch e.(type) {
	case *schemas.Started, *schemas.Ended:
		jobs = append(c.beside(j.Setting.Nodes, j.ID, now), j)
	case *schemas.Submitted:
		return nil
	}
	running := jobs[:0:0]
	for _, j := range jobs {
		if j.State == schemas.StateRunning {
			running = append(running, j)
		}
	}
	return running
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

// asked is the question of a job that waits, asked again.
func (c *Cluster) asked(j *Job, now time.Time) *Question {
	q := c.Ask(j.Submitted.Request, now)
	q.Elapsed = max(0, now.Sub(j.Submitted.At))
	return q
}

func (c *Cluster) members(jobs []*Job, now time.Time) []Member {
	all := make([]Member, len(jobs))
	for i, j := range jobs {
		all[i] = c.member(j, now)
	}
	return all
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

// sharedRecord returns the record to be kept: it will not change.
func (c *Cluster) sharedRecord() *Record {
	if !c.recordShared.Load() {
		c.recordShared.Store(true)
	}
	return c.record
}

// model is what is known of a model on a dataset. The list is never changed in place, so that
// questions may keep it.
type model struct {
	described      Description
	configurations []Configuration // with an epoch, at most keptTried
}

// keptTried bounds the configurations of a model; more would not be learnt any sooner.
const keptTried = 256

// add notes the configuration of an epoch.
func (m *model) add(s *schemas.Setting) {
	c := Configuration{s.BatchSize, s.CPUs}
	if len(m.configurations) < keptTried && !slices.Contains(m.configurations, c) {
		m.configurations = append(slices.Clip(m.configurations), c)
	}
}

// Description is what requests and jobs report of a model. A zero is unknown.
type Description struct {
	Parameters        uint64 // weights of the network
	TrainingSamples   uint64 // in one epoch
	ValidationSamples uint64 // that its accuracies are measured on
}

// or fills in what is unknown.
func (d Description) or(other Description) Description {
	return Description{
		Parameters:        cmp.Or(d.Parameters, other.Parameters),
		TrainingSamples:   cmp.Or(d.TrainingSamples, other.TrainingSamples),
		ValidationSamples: cmp.Or(d.ValidationSamples, other.ValidationSamples),
	}
}

// mostModels bounds how many models are remembered; beyond it the least recently used is
// forgotten. A cluster of 10,000 nodes trains hundreds; names that are made up for each
// job come and go.
const mostModels = 1 << 12

// levelOf names what a job trains: its model and dataset.
func levelOf(s *schemas.Setting) string { return schemas.ModelLevel(s.Model, s.Dataset) }

// useModel returns the model of a level, which is made on first use, and notes that it is used
// now.
func (c *Cluster) useModel(level string) *model {
	m := c.models[level]
	if m == nil {
		m = &model{}
		c.models[level] = m
	}
	c.lastModels.use(level)
	return m
}

// forgetModels drops the least recently used models beyond the limit.
func (c *Cluster) forgetModels() {
	for len(c.models) > c.limits.models {
		name, ok := c.lastModels.oldest()
		if !ok {
			return
		}
		c.lastModels.remove(name)
		delete(c.models, name)
	}
}

// modelOf returns what is known of the model of a request on its dataset, the zero value if
// nothing is.
func (c *Cluster) modelOf(q *schemas.JobRequest) model {
	if m := c.models[schemas.ModelLevel(q.Model, q.Dataset)]; m != nil {
		return *m
	}
	return model{}
}

// describe notes what an event reports of the model of a level; zeros report nothing.
func (c *Cluster) describe(level string, reported Description) {
	m := c.useModel(level)
	m.described = reported.or(m.described)
}

// Watch predicts every job again that an event touches and returns the warnings
// and all-clears that this calls for, noted in the cluster as those of the log
// are. j is what Apply returned for the event. It is what an Advisor does after
// each event, for whoever replays or simulates a log.
func (c *Cluster) Watch(e schemas.Event, j *Job, cause uint64, r Regressors, now time.Time) []*schemas.Risk {
	var risks []*schemas.Risk
	for _, j := range c.touched(e, j, now) {
		q := c.Again(j, now)
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
