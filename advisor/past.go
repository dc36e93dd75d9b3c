package advisor

import (
	"encoding/json"
	"time"

	"courier/schemas"
)

// Limits of the ended jobs in memory. Jobs that are queued, submitted or running are never dropped.
const (
	// maxEndedJobs bounds the ended jobs that job.status and job.list return: ten days with
	// 10,000 jobs per day. The job that ended first is dropped first.
	maxEndedJobs = 100_000
	// maxUnpackedJobs bounds the ended jobs that are not packed. A lost job comes back within
	// minutes, if at all.
	maxUnpackedJobs = 1024
	// maxReasonBytes bounds the reason of the end of a packed job.
	maxReasonBytes = 512
)

// pastJob is an ended job in packed form. It never changes: a job that comes back is unpacked, and
// packed again after its end.
//
// It keeps the fields that job.status and job.list return and that a later run needs: the request
// without labels, and the figures of the promise. It loses the rest of the answer, the labels, the
// observed epochs, the last warning, and the last advice except for its decision. A lost job that
// comes back has no observed epochs.
type pastJob struct {
	id       string
	state    schemas.State
	first    uint64 // as in Job
	listedAt uint64 // as in Job
	endOrder uint64
	text     []byte // JSON of a packedJob
}

// packedJob is the JSON of a packed job. The names are short, because there are many.
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
	InitialCPUs  uint32          `json:"bc,omitempty"`
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

// packedAdvice is the part of an advice that is compared with its outcome.
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
		Reason:       j.Reason[:min(len(j.Reason), maxReasonBytes)],
		MetSLO:       j.MetSLO,
		Began:        j.initialBatch,
		InitialCPUs:  j.initialCPUs,
		Changed:      j.hasMoved,
		EpochAt:      j.epochAt,
		Behind:       j.clockLag,
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
	if err != nil { // a number is not finite; no valid event has one
		text = nil
	}
	return &pastJob{id: j.ID, state: j.State, first: j.first, listedAt: j.listedAt, endOrder: j.endOrder, text: text}
}

// orderEntry returns the entry of the packed job in Cluster.order.
func (p *pastJob) orderEntry() listEntry {
	return listEntry{key: p.listedAt, tie: p.first, past: p}
}

// orderEntry returns the entry of the job in Cluster.order.
func (j *Job) orderEntry() listEntry { return listEntry{key: j.listedAt, tie: j.first, job: j} }

// unpack returns the job with every packed field.
func (p *pastJob) unpack() *Job {
	var k packedJob
	if json.Unmarshal(p.text, &k) != nil {
		k = packedJob{}
	}
	j := &Job{
		ID:           p.id,
		State:        p.state,
		first:        p.first,
		listedAt:     p.listedAt,
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
		initialBatch: k.Began,
		initialCPUs:  k.InitialCPUs,
		hasMoved:     k.Changed,
		epochAt:      k.EpochAt,
		clockLag:     k.Behind,
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
