package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"courier/schemas"
)

// Run is one training run that is over.
type Run struct {
	Place
	SourceID string // its own name in the source; empty: none
	JobID    string
	Number   uint32 // which start of the job, from 1
	Setting  schemas.Setting
	Cores    uint32   // of its smallest node; 0: unknown
	User     string   // who ran it
	Beside   uint32   // jobs like it that ran all the time beside it, of which no more is known
	Outcome  string   // schemas.EventFinished, EventFailed or EventCancelled
	Seconds  float64  // from its start to its end
	Startup  *float64 // seconds of that before its first epoch; nil: unknown
	Accuracy *float64 // at its end, 0 to 1; nil: unknown
	Epochs   []Epoch  // none: only the whole time is known

	StartedAt time.Time       // zero until it is laid out, where the source does not tell
	silent    bool            // it claims no time, though its events have some
	timeless  bool            // it has no times of its own
	kept      []schemas.Event // as the source has them
}

// Epoch is one epoch of a Run.
type Epoch struct {
	Number   uint32
	Seconds  float64  // above 0
	Source   string   // schemas.DurationReported or DurationArrival
	End      float64  // seconds from the run's start; 0: they follow each other
	Loss     *float64 // of training
	Accuracy *float64 // 0 to 1
}

// EndedAt is when the run ended.
func (r *Run) EndedAt() time.Time { return r.after(r.Seconds) }

func (r *Run) after(seconds float64) time.Time {
	return r.StartedAt.Add(duration(seconds))
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// EndID is the identity of the event that completes the run: the last of Events.
func (r *Run) EndID() string { return schemas.EndedID(r.JobID, r.Number, r.Outcome) }

// Events returns the run's events in the order in which they are published. The
// last one is its end, so that a run whose end is in a log is there wholly.
func (r *Run) Events() []schemas.Event {
	if r.kept != nil {
		return r.kept
	}
	events := []schemas.Event{r.started(r.JobID)}
	for i := range r.Beside {
		id := fmt.Sprintf("%s-beside-%d", r.JobID, i+1)
		events = append(events, r.started(id), r.ended(id, &schemas.Ended{Reason: "ran beside " + r.JobID + "; its own times are not known"}))
	}
	end := r.startup()
	for i := range r.Epochs {
		e := &r.Epochs[i]
		if end += e.Seconds; e.End > 0 {
			end = e.End
		}
		x := &schemas.Epoch{Setting: r.Setting, Epoch: e.Number, DurationSeconds: e.Seconds, DurationSource: e.Source, NodeCores: r.Cores, Loss: e.Loss, Accuracy: e.Accuracy}
		x.JobStamp = r.stamp(r.JobID, schemas.EpochID(r.JobID, r.Number, e.Number), r.after(end))
		events = append(events, x)
	}
	return append(events, r.ended(r.JobID, &schemas.Ended{DurationSeconds: r.Seconds, StartupSeconds: r.Startup, EpochsDone: r.epochsDone(), Accuracy: r.Accuracy}))
}

// startup is when the first epoch begins, in seconds from the start.
func (r *Run) startup() float64 {
	if r.Startup == nil {
		return 0
	}
	return *r.Startup
}

func (r *Run) stamp(job, id string, at time.Time) schemas.JobStamp {
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at.UTC()}, JobID: job, Run: r.Number}
}

func (r *Run) started(job string) *schemas.Started {
	e := &schemas.Started{Setting: r.Setting, NodeCores: r.Cores, User: r.User}
	e.JobStamp = r.stamp(job, schemas.StartedID(job, r.Number), r.StartedAt)
	return e
}

func (r *Run) ended(job string, e *schemas.Ended) *schemas.Ended {
	e.Outcome, e.Setting = r.Outcome, r.Setting
	e.JobStamp = r.stamp(job, schemas.EndedID(job, r.Number, r.Outcome), r.EndedAt())
	return e
}

// name gives the run the ID of its job: its own name, else its model's, and a
// digest of all that it says. Where it stands and when it was laid out are no part of it; occurrence
// tells runs apart that say the same.
func (r *Run) name(occurrence int) {
	h := sha256.New()
	h.Write([]byte(r.content()))
	fmt.Fprintf(h, "\n%d", occurrence)
	digest := strings.ToLower(base32.HexEncoding.EncodeToString(h.Sum(nil)))[:12]
	r.JobID = "past-" + digest
	if slug := slugOf(cmp.Or(r.SourceID, r.Setting.Model)); slug != "" {
		r.JobID = "past-" + slug + "-" + digest
	}
}

// content is what the run says, as text.
func (r *Run) content() string {
	s := &r.Setting
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %d %d %d %d %d %s %v", r.SourceID, s.Model, s.BatchSize, s.CPUs, s.Epochs, s.TrainingSamples, r.Beside, r.Outcome, r.Seconds)
	if s.Dataset != "" {
		fmt.Fprintf(&b, " dataset %q", s.Dataset)
	}
	if r.Accuracy != nil {
		fmt.Fprintf(&b, " accuracy %v", *r.Accuracy)
	}
	if r.Startup != nil {
		fmt.Fprintf(&b, " startup %v", *r.Startup)
	}
	if !r.StartedAt.IsZero() {
		fmt.Fprintf(&b, " at %d", r.StartedAt.UnixNano())
	}
	for i := range r.Epochs {
		e := &r.Epochs[i]
		fmt.Fprintf(&b, " %d:%v", e.Number, e.Seconds)
		if e.Accuracy != nil {
			fmt.Fprintf(&b, "=%v", *e.Accuracy)
		}
	}
	return b.String()
}

// mostSlug is how much of a run's own name is in its job's.
const mostSlug = 32

// slugOf turns a name into a part of a job's ID.
func slugOf(name string) string {
	if len(name) > mostSlug {
		name = name[:mostSlug]
	}
	if name == "" {
		return ""
	}
	return strings.Trim(schemas.NodeName(name), "-")
}

// epochsDone is how many epochs the source has rows of; without any, how many it says a finished
// run had.
func (r *Run) epochsDone() uint32 {
	if n := len(r.Epochs); n > 0 || r.Outcome != schemas.EventFinished {
		return uint32(n)
	}
	return r.Setting.Epochs
}
