package advisor

import (
	"encoding/json"
	"iter"
	"time"

	"courier/schemas"
)

// Of the jobs that have ended.
const (
	// keptJobs bounds how many ended jobs job.status and job.list show: ten days of 10,000
	// jobs a day. The job that ended first is forgotten first. Jobs that wait or run are
	// never forgotten.
	keptJobs = 100_000
	// keptWhole is how many of them keep everything, the last ones; older ones are packed.
	// A lost job comes back within minutes, if at all.
	keptWhole = 1024
	// keptReason is how many bytes of the reason of its end a packed job keeps.
	keptReason = 512
)

// How long after it was told to start a job that has not started counts as abandoned. It is
// then treated like an ended job, but stays submitted, and may still be started.
const (
	abandonedSLOs  = 10                  // of its SLO, and not before
	abandonedLeast = 24 * time.Hour      // this
	abandonedAfter = 30 * 24 * time.Hour // without an SLO
)

// pastJob is a job that ended a while ago. It never changes: a job that comes back is
// unpacked, and packed again when it has ended.
//
// It keeps what job.status and job.list show, and what a later run needs: its request
// without labels, and the figures of its promise. It loses the answer to its request but
// for these, its labels, its last epochs (a lost job that comes back begins to learn its
// own factor again), its last warning, and all but the decision of its last advice.
type pastJob struct {
	id    string
	state schemas.State
	first uint64 // as in Job
	filed uint64
	text  []byte // JSON of a packedJob
}

// packedJob is what a packed job keeps, with short names: there are many.
type packedJob struct {
	Setting      schemas.Setting `json:"s,omitzero"`
	Run          uint32          `json:"r,omitempty"`
	User         string          `json:"u,omitempty"`
	StartedAt    time.Time       `json:"sa,omitzero"`
	EndedAt      time.Time       `json:"ea,omitzero"`
	EpochsDone   uint32          `json:"e,omitempty"`
	LongestEpoch time.Duration   `json:"le,omitempty"`
	Accuracy     *float64        `json:"a,omitempty"`
	Reason       string          `json:"w,omitempty"`
	MetSLO       *bool           `json:"m,omitempty"`
	Began        uint32          `json:"b,omitempty"`
	Changed      bool            `json:"c,omitempty"`
	EpochAt      time.Time       `json:"et,omitzero"`
	Behind       time.Duration   `json:"bh,omitempty"`
	Last         uint64          `json:"l,omitempty"`
	Heartbeat    bool            `json:"h,omitempty"`
	CountedLost  bool            `json:"cl,omitempty"`

	SubmittedAt time.Time           `json:"qa,omitzero"`
	Request     *schemas.JobRequest `json:"q,omitempty"`
	Answer      *packedAdvice       `json:"qd,omitempty"`
	Promise     *packedAdvice       `json:"p,omitempty"`  // if it is not the answer
	Promised    bool                `json:"pa,omitempty"` // the answer is the promise
	Decision    schemas.Decision    `json:"d,omitempty"`  // of the last advice
	Cause       uint64              `json:"dc,omitempty"` // of the last advice
}

// packedAdvice is what is kept of an advice: what is compared with what came of it.
type packedAdvice struct {
	At         time.Time        `json:"at,omitzero"`
	Decision   schemas.Decision `json:"d,omitempty"`
	Confidence float64          `json:"c,omitempty"`
	Threshold  float64          `json:"t,omitempty"`
	Processes  float64          `json:"p,omitempty"`
	Nodes      []string         `json:"n,omitempty"`
	BatchSize  uint32           `json:"b,omitempty"`
	CPUs       uint32           `json:"cp,omitempty"`
	Epochs     uint32           `json:"e,omitempty"`
	Seconds    *float64         `json:"s,omitempty"`
	Bound      *float64         `json:"u,omitempty"`
	Chance     *float64         `json:"pr,omitempty"`
	Regressor  string           `json:"r,omitempty"` // of epoch times
}

func packAdvice(a *schemas.Advice) *packedAdvice {
	if a == nil {
		return nil
	}
	p := &packedAdvice{
		At:         a.At,
		Decision:   a.Decision,
		Confidence: a.Confidence,
		Threshold:  a.Threshold,
		Processes:  a.Load.Processes,
		Nodes:      a.Nodes,
		Regressor:  a.Regressors[schemas.TargetEpochTime],
	}
	if c := a.Chosen; c != nil {
		p.BatchSize, p.CPUs, p.Epochs = c.BatchSize, c.CPUs, c.Epochs
		p.Seconds, p.Bound, p.Chance = c.PredictedSeconds, c.UpperBoundSeconds, c.Probability
	}
	return p
}

func (p *packedAdvice) unpack(id string) *schemas.Advice {
	a := &schemas.Advice{
		JobStamp:   schemas.JobStamp{Stamp: schemas.Stamp{At: p.At}, JobID: id},
		Decision:   p.Decision,
		Confidence: p.Confidence,
		Threshold:  p.Threshold,
		Load:       schemas.Load{Processes: p.Processes},
		Nodes:      p.Nodes,
		Chosen: &schemas.Alternative{
			BatchSize:         p.BatchSize,
			CPUs:              p.CPUs,
			Epochs:            p.Epochs,
			PredictedSeconds:  p.Seconds,
			UpperBoundSeconds: p.Bound,
			Probability:       p.Chance,
		},
	}
	if p.Regressor != "" {
		a.Regressors = map[string]string{schemas.TargetEpochTime: p.Regressor}
	}
	return a
}

// pack returns the packed form of an ended job.
func (j *Job) pack() *pastJob {
	p := packedJob{
		Setting:      j.Setting,
		Run:          j.Run,
		User:         j.User,
		StartedAt:    j.StartedAt,
		EndedAt:      j.EndedAt,
		EpochsDone:   j.EpochsDone,
		LongestEpoch: j.LongestEpoch,
		Accuracy:     j.Accuracy,
		Reason:       j.Reason[:min(len(j.Reason), keptReason)],
		MetSLO:       j.MetSLO,
		Began:        j.began,
		Changed:      j.changed,
		EpochAt:      j.epochAt,
		Behind:       j.behind,
		Last:         j.last,
		Heartbeat:    j.heartbeat,
		CountedLost:  j.countedLost,
	}
	if s := j.Submitted; s != nil {
		q := s.Request
		q.Labels = nil
		p.SubmittedAt, p.Request, p.Answer = s.At, &q, packAdvice(&s.Advice)
		if p.Promised = j.Promise == &s.Advice; p.Promised {
			p.Answer.Nodes = s.Advice.Nodes
		}
	}
	if !p.Promised {
		p.Promise = packAdvice(j.Promise)
	}
	if j.Advice != nil {
		p.Decision, p.Cause = j.Advice.Decision, j.Advice.CauseSequence
	}
	text, err := json.Marshal(&p)
	if err != nil { // a figure that is not finite, which no valid event has
		text = nil
	}
	return &pastJob{id: j.ID, state: j.State, first: j.first, filed: j.filed, text: text}
}

// unpack returns the job, with what is kept of it.
func (p *pastJob) unpack() *Job {
	var k packedJob
	if json.Unmarshal(p.text, &k) != nil {
		k = packedJob{}
	}
	j := &Job{
		ID:           p.id,
		State:        p.state,
		first:        p.first,
		Setting:      k.Setting,
		Run:          k.Run,
		User:         k.User,
		StartedAt:    k.StartedAt,
		EndedAt:      k.EndedAt,
		EpochsDone:   k.EpochsDone,
		LongestEpoch: k.LongestEpoch,
		Accuracy:     k.Accuracy,
		Reason:       k.Reason,
		MetSLO:       k.MetSLO,
		began:        k.Began,
		changed:      k.Changed,
		epochAt:      k.EpochAt,
		behind:       k.Behind,
		last:         k.Last,
		heartbeat:    k.Heartbeat,
		countedLost:  k.CountedLost,
	}
	if k.Request != nil {
		s := &schemas.Submitted{Request: *k.Request}
		s.JobID, s.At = p.id, k.SubmittedAt
		if k.Answer != nil {
			s.Advice = *k.Answer.unpack(p.id)
		}
		j.Submitted = s
		if k.Promised {
			j.Promise = &s.Advice
		}
	}
	if k.Promise != nil {
		j.Promise = k.Promise.unpack(p.id)
	}
	if k.Decision != "" {
		j.Advice = &schemas.Advice{Decision: k.Decision, CauseSequence: k.Cause}
	}
	return j
}

// job returns a job, nil if none is remembered. One that ended long ago is unpacked for
// the caller: changes to it are lost, and its answer is only in the log.
func (c *Cluster) job(id string) *Job {
	if j := c.jobs[id]; j != nil {
		return j
	}
	if p := c.past[id]; p != nil {
		return p.unpack()
	}
	return nil
}

// knows reports whether a job is remembered.
func (c *Cluster) knows(id string) bool { return c.jobs[id] != nil || c.past[id] != nil }

// indexOf returns where a job is in the order of all, -1 if it is not remembered.
func (c *Cluster) indexOf(id string) int {
	if j := c.jobs[id]; j != nil {
		return c.order.index(entry{key: j.first, job: j})
	}
	if p := c.past[id]; p != nil {
		return c.order.index(entry{key: p.first, past: p})
	}
	return -1
}

// newestFirst returns the jobs in a state, "" for all, the newest first, from behind a job
// on, or from the start. known is false if that job is not remembered.
func (c *Cluster) newestFirst(after string, state schemas.State) (jobs iter.Seq[*Job], known bool) {
	i := len(c.order.entries)
	if after != "" {
		if i = c.indexOf(after); i < 0 {
			return nil, false
		}
	}
	return func(yield func(*Job) bool) {
		for i--; i >= 0; i-- {
			e := &c.order.entries[i]
			if e.removed() || state != "" && e.state() != state {
				continue
			}
			if !yield(e.unpacked()) {
				return
			}
		}
	}, true
}

// recalled returns a packed job to be changed, or a new one. It is not part of the state
// before it is inserted.
func (c *Cluster) recalled(id string, sequence uint64) *Job {
	if p := c.past[id]; p != nil {
		return p.unpack()
	}
	return &Job{ID: id, first: sequence}
}

// insert adds a job that has changed for the first time, or again after it was packed. A
// submission that this process recorded may be applied before an older event arrives, so
// the order is that of sequences.
func (c *Cluster) insert(j *Job) {
	if p := c.past[j.ID]; p != nil {
		delete(c.past, j.ID)
		c.old.remove(entry{key: p.filed, past: p})
		c.order.replace(entry{key: p.first, past: p}, entry{key: p.first, job: j})
	} else {
		c.order.add(entry{key: j.first, job: j})
	}
	c.jobs[j.ID] = j
}

// file keeps the lists of jobs that have ended and of those that may be abandoned.
func (c *Cluster) file(j *Job) {
	submitted := j.State == schemas.StateSubmitted
	if j.due > 0 && !submitted {
		c.due.remove(entry{key: j.due, job: j})
		j.due = 0
	}
	if j.filed > 0 && !j.resting() {
		c.ended.remove(entry{key: j.filed, job: j})
		j.filed = 0
	}
	switch {
	case submitted && j.due == 0 && j.filed == 0:
		j.due = uint64(j.abandonedAt().UnixNano())
		c.due.add(entry{key: j.due, job: j})
	case j.resting() && j.filed == 0:
		c.fileEnded(j)
	}
}

func (c *Cluster) fileEnded(j *Job) {
	c.ends++
	j.filed = c.ends
	c.ended.add(entry{key: j.filed, job: j})
}

// abandonedAt is when a submitted job that has not started counts as abandoned. The time
// begins with the promise that it may start, because it may have waited for that.
func (j *Job) abandonedAt() time.Time {
	if j.hasDeadline() {
		slo := min(time.Duration(j.Submitted.Request.SLO), schemas.MaxSLO)
		return j.Promise.At.Add(max(abandonedLeast, slo*abandonedSLOs))
	}
	return j.Promise.At.Add(abandonedAfter)
}

// abandon files the submitted jobs that were not started in time.
func (c *Cluster) abandon(now time.Time) {
	for {
		e, ok := c.due.first()
		if !ok || int64(e.key) > now.UnixNano() {
			return
		}
		c.due.remove(e)
		e.job.due = 0
		c.fileEnded(e.job)
	}
}

// forgetJobs packs and drops the jobs that ended first.
func (c *Cluster) forgetJobs() {
	for c.ended.count > c.limits.whole {
		e, _ := c.ended.first()
		c.ended.remove(e)
		p := e.job.pack()
		delete(c.jobs, p.id)
		c.past[p.id] = p
		c.order.replace(entry{key: p.first, job: e.job}, entry{key: p.first, past: p})
		c.old.add(entry{key: p.filed, past: p})
	}
	for c.old.count > max(0, c.limits.ended-c.limits.whole) {
		e, _ := c.old.first()
		c.old.remove(e)
		delete(c.past, e.past.id)
		c.order.remove(entry{key: e.past.first, past: e.past})
	}
}
