package importer

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// runEvents are the kinds of events of a run that a runner publishes, apart from moves.
var runEvents = []string{
	schemas.EventStarted, schemas.EventEpoch, schemas.EventFinished, schemas.EventFailed, schemas.EventCancelled,
}

// eventRuns groups Courier's own events by run.
type eventRuns struct {
	*Reader
	runs  map[runKey]*PastRun
	order []*PastRun
}

type runKey struct {
	job    string
	number uint32
}

// event adds an event; duplicates, and events that a runner does not publish, are ignored.
func (s *eventRuns) event(at Place, subject string, body json.RawMessage) {
	if kind := subject[strings.LastIndexByte(subject, '.')+1:]; !slices.Contains(runEvents, kind) {
		return
	}
	event, err := schemas.Parse(subject, body)
	if err != nil {
		s.reject(at, refuse(ReasonUnreadable, "event", "%s", schemas.Plain(err)))
		return
	}
	job, position := positionOf(event)
	key := runKey{job, uint32(position >> 32)}
	run := s.runs[key]
	if run == nil {
		run = &PastRun{Place: at, SourceID: job, JobID: job, Number: key.number}
		s.runs[key], s.order = run, append(s.order, run)
	}
	if n := len(run.kept); n == 0 || run.kept[n-1].ID() != event.ID() {
		run.kept = append(run.kept, event)
	}
}

// end converts the groups of events to runs, which keep their events.
func (s *eventRuns) end() {
	for _, run := range s.order {
		if why := run.fromEvents(); why != nil {
			s.reject(run.Place, why)
			continue
		}
		s.accept(run)
	}
}

// fromEvents sets the fields of a run to those of its events.
func (r *PastRun) fromEvents() *Refusal {
	var last time.Time
	for i, event := range r.kept {
		at := event.Stamped().At
		if at.Before(last) || r.Outcome != "" {
			return refuse(ReasonOrder, "at", "%s at %s follows a later event, or the end of its run", event.ID(), at)
		}
		last = at
		switch e := event.(type) {
		case *schemas.Started:
			r.StartedAt, r.Setting = at, e.Setting
		case *schemas.Epoch:
			if i == 0 {
				r.StartedAt, r.Setting = at.Add(-duration(e.DurationSeconds)), e.Setting
			}
			r.Epochs = append(r.Epochs, PastEpoch{
				Number: e.Epoch, Seconds: e.DurationSeconds, Accuracy: e.Accuracy,
			})
		case *schemas.Ended:
			if id := schemas.EndedID(r.JobID, r.Number, e.Outcome); e.EventID != id {
				return refuse(ReasonUnreadable, "event_id", "the end of the run is named %q, want %q", e.EventID, id)
			}
			r.Outcome, r.Startup, r.Accuracy = e.Outcome, e.StartupSeconds, e.Accuracy
		}
	}
	r.Seconds = last.Sub(r.StartedAt).Seconds()
	switch {
	case r.Outcome == "":
		return refuse(ReasonUnfinished, "", "run %d of job %s has no finished, failed or cancelled event",
			r.Number, r.JobID)
	case r.StartedAt.IsZero():
		return refuse(ReasonMissing, FieldStartedAt, "run %d of job %s has neither a started event nor an epoch",
			r.Number, r.JobID)
	case !(r.Seconds > 0):
		return refuse(ReasonPositive, "at", "job %s ended when it started", r.JobID)
	}
	return r.checkEpochs()
}
