package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"courier/schemas"
)

// PastRun is a past training run.
type PastRun struct {
	Place
	SourceID  string // ID in the source; empty: none
	JobID     string
	Number    uint32 // number of the job's start, from 1
	Setting   schemas.Setting
	Done      uint32      `json:",omitempty"` // epochs of a run that ended early; 0: those of Setting
	NodeModel string      // CPU and GPU model of the nodes; empty: unknown
	Cores     uint32      // logical processors of the smallest node; 0: unknown
	User      string      // user who ran it
	Beside    uint32      // number of equal jobs that ran concurrently all the time
	Outcome   string      // schemas.EventFinished, EventFailed or EventCancelled
	Seconds   float64     // from the start to the end
	Limit     float64     // time limit of the batch system in seconds; 0: none
	Reason    string      // why the run ended, if the source says so
	Startup   *float64    // seconds before the first epoch; nil: unknown
	Accuracy  *float64    // final accuracy, 0 to 1; nil: unknown
	Epochs    []PastEpoch // empty: only the total time is known

	StartedAt time.Time // without timestamps: zero until it is scheduled
	timeless  bool      // the source has no timestamps
}

// PastEpoch is one epoch of a Run.
type PastEpoch struct {
	Number   uint32
	Seconds  float64  // above 0
	Loss     *float64 // training loss
	Accuracy *float64 // 0 to 1
	Metric   string   // behind the accuracy, if that is not the metric itself
	Printed  float64  // value of Metric
}

// EndedAt returns the end of the run.
func (r *PastRun) EndedAt() time.Time { return r.after(r.Seconds) }

func (r *PastRun) after(seconds float64) time.Time {
	return r.StartedAt.Add(duration(seconds))
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

// Events returns the run's events in the order of publication. The last one is the end, so that a
// log that contains the end contains the whole run.
func (r *PastRun) Events() []schemas.Event {
	events := []schemas.Event{r.started(r.JobID)}
	for i := range r.Beside {
		id := fmt.Sprintf("%s-beside-%d", r.JobID, i+1)
		events = append(events, r.started(id), r.ended(id, &schemas.Ended{
			Reason: "ran beside " + r.JobID + "; its own times are not known",
		}))
	}
	end := r.startup()
	for i := range r.Epochs {
		e := &r.Epochs[i]
		end += e.Seconds
		x := &schemas.Epoch{
			Setting:         r.Setting,
			Epoch:           e.Number,
			DurationSeconds: e.Seconds,
			DurationSource:  schemas.DurationReported,
			NodeCores:       r.Cores,
			Loss:            e.Loss,
			Accuracy:        e.Accuracy,
		}
		if e.Metric != "" {
			x.Metric, x.MetricValue = e.Metric, &e.Printed
		}
		x.JobStamp = r.stamp(r.JobID, schemas.EpochID(r.JobID, r.Number, e.Number), r.after(end))
		events = append(events, x)
	}
	return append(events, r.ended(r.JobID, &schemas.Ended{
		DurationSeconds: r.Seconds,
		StartupSeconds:  r.Startup,
		EpochsDone:      r.epochsDone(),
		Accuracy:        r.Accuracy,
		Reason:          r.Reason,
	}))
}

// startup returns the time from the start to the first epoch in seconds.
func (r *PastRun) startup() float64 {
	if r.Startup == nil {
		return 0
	}
	return *r.Startup
}

func (r *PastRun) stamp(job, id string, at time.Time) schemas.JobStamp {
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: id, At: at.UTC()},
		JobID: job,
		Run:   r.Number,
	}
}

func (r *PastRun) started(job string) *schemas.Started {
	e := &schemas.Started{
		Setting: r.Setting, NodeCores: r.Cores, User: r.User, LimitSeconds: r.Limit,
	}
	if r.NodeModel != "" {
		for range r.Setting.Nodes {
			e.NodesCPUModel = append(e.NodesCPUModel, r.NodeModel)
			e.NodesCores = append(e.NodesCores, r.Cores)
		}
	}
	e.JobStamp = r.stamp(job, schemas.StartedID(job, r.Number), r.StartedAt)
	return e
}

func (r *PastRun) ended(job string, e *schemas.Ended) *schemas.Ended {
	e.Outcome, e.Setting = r.Outcome, r.Setting
	e.JobStamp = r.stamp(job, schemas.EndedID(job, r.Number, r.Outcome), r.EndedAt())
	return e
}

// name sets the job ID: the run's ID in the source or its model, and a digest of its content.
// occurrence distinguishes runs with the same content.
func (r *PastRun) name(content string, occurrence int) {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", content, occurrence))
	r.JobID = "past-" + strings.ToLower(base32.HexEncoding.EncodeToString(digest[:]))[:12]
	source := cmp.Or(r.SourceID, r.Setting.Model)
	if slug := strings.Trim(schemas.NodeName(source[:min(len(source), maxSlug)]), "-"); slug != "" {
		r.JobID = strings.Replace(r.JobID, "past-", "past-"+slug+"-", 1)
	}
}

// content returns what identifies a run. The name of the file, which may be that of its node, and
// Options.Since do not matter.
func (r *PastRun) content() string {
	c := *r
	c.Place, c.Setting.Nodes, c.Cores = Place{}, nil, 0
	if c.timeless {
		c.StartedAt = time.Time{}
	}
	text, _ := json.Marshal(c) // texts and finite numbers
	return string(text)
}

// maxSlug is the maximum length of the name in a job ID.
const maxSlug = 32

// epochsDone returns the number of epochs in the source, or for a finished run without epochs the
// number that it did.
func (r *PastRun) epochsDone() uint32 {
	if n := len(r.Epochs); n > 0 || r.Outcome != schemas.EventFinished {
		return uint32(n)
	}
	return cmp.Or(r.Done, r.Setting.Epochs)
}
