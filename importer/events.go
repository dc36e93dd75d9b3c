package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"courier/schemas"
)

// runEvents are the kinds of events of a run that a runner publishes, apart from moves.
var runEvents = []string{
	schemas.EventStarted, schemas.EventEpoch, schemas.EventFinished, schemas.EventFailed, schemas.EventCancelled,
}

// eventRuns groups Courier events by run.
type eventRuns struct {
	*Reader
	runs  map[string]*eventRun // by job and run
	order []*eventRun
}

// eventRun holds the events of a run.
type eventRun struct {
	*PastRun
	started *schemas.Started
	epochs  []*schemas.Epoch
	ended   *schemas.Ended
	broken  *Refusal
}

// event adds an event; subject is empty if the source has none.
func (s *eventRuns) event(at Place, subject string, body json.RawMessage) {
	var stamp struct {
		schemas.JobStamp
		Outcome   *string          `json:"outcome"`
		Epoch     *json.RawMessage `json:"epoch"`
		Heartbeat *json.RawMessage `json:"heartbeat_seconds"`
	}
	if err := json.Unmarshal(body, &stamp); err != nil {
		s.reject(at, refuse(ReasonUnreadable, "event", "%s", err))
		return
	}
	if subject == "" {
		kind := ""
		switch {
		case stamp.Outcome != nil:
			kind = *stamp.Outcome
		case stamp.Epoch != nil:
			kind = schemas.EventEpoch
		case stamp.Heartbeat != nil || strings.HasSuffix(stamp.EventID, "/"+schemas.EventStarted):
			kind = schemas.EventStarted
		}
		subject = schemas.JobSubject(stamp.JobID, kind)
	}
	if !slices.ContainsFunc(runEvents, func(kind string) bool {
		return subject == schemas.JobSubject(stamp.JobID, kind)
	}) {
		return
	}
	key := fmt.Sprintf("%s/%d", stamp.JobID, stamp.Run)
	t := s.runs[key]
	if t == nil {
		t = &eventRun{PastRun: &PastRun{Place: at, SourceID: stamp.JobID, JobID: stamp.JobID, Number: stamp.Run}}
		s.runs[key], s.order = t, append(s.order, t)
	}
	event, err := schemas.Parse(subject, body)
	var refusal *schemas.Error
	if errors.As(err, &refusal) {
		t.Place, t.broken = at, refuse(ReasonInvalid, refusal.Field, "%s", refusal.Message)
		return
	}
	t.add(at, event)
}

// add adds an event and ignores duplicates.
func (t *eventRun) add(at Place, event schemas.Event) {
	want := ""
	switch e := event.(type) {
	case *schemas.Started:
		t.started, want = e, schemas.StartedID(t.JobID, t.Number)
	case *schemas.Epoch:
		want = schemas.EpochID(t.JobID, t.Number, e.Epoch)
		if n := len(t.epochs); n == 0 || t.epochs[n-1].Epoch != e.Epoch {
			t.epochs = append(t.epochs, e)
		}
	case *schemas.Ended:
		t.ended, want = e, schemas.EndedID(t.JobID, t.Number, e.Outcome)
	}
	if event.ID() != want && t.broken == nil {
		t.Place, t.broken = at, refuse(ReasonInvalid, "event_id",
			"%q is not the ID of this event, %q", clip(event.ID()), want)
	}
}

// end converts the groups of events to runs, which keep their events.
func (s *eventRuns) end() {
	for _, t := range s.order {
		if why := t.build(); why != nil {
			s.reject(t.Place, why)
			continue
		}
		s.accept(t.PastRun)
	}
}

func (t *eventRun) build() *Refusal {
	switch {
	case t.broken != nil:
		return t.broken
	case t.Number == 0:
		return refuse(ReasonInvalid, "run", "0 is not a run number: runs are numbered from 1")
	case t.ended == nil:
		return refuse(ReasonUnfinished, "",
			"run %d of job %s has no finished, failed or cancelled event", t.Number, t.JobID)
	case t.started == nil && len(t.epochs) == 0:
		return refuse(ReasonMissing, FieldStartedAt,
			"run %d of job %s has neither a started event nor an epoch", t.Number, t.JobID)
	case t.started != nil:
		t.StartedAt, t.Setting, t.kept = t.started.At, t.started.Setting, append(t.kept, t.started)
	default:
		first := t.epochs[0]
		t.StartedAt, t.Setting = first.At.Add(-duration(first.DurationSeconds)), first.Setting
	}
	last := t.StartedAt
	for _, e := range t.epochs {
		if e.At.Before(last) {
			return refuse(ReasonOrder, "at",
				"epoch %d of job %s ended at %s, before the previous event", e.Epoch, t.JobID, e.At)
		}
		last = e.At
		t.Epochs = append(t.Epochs, PastEpoch{
			Number:   e.Epoch,
			Seconds:  e.DurationSeconds,
			Source:   e.DurationSource,
			Accuracy: e.Accuracy,
		})
		t.kept = append(t.kept, e)
	}
	if t.ended.At.Before(last) {
		return refuse(ReasonOrder, "at", "job %s ended at %s, before its start or last epoch", t.JobID, t.ended.At)
	}
	t.kept = append(t.kept, t.ended)
	t.Outcome, t.Startup, t.Accuracy = t.ended.Outcome, t.ended.StartupSeconds, t.ended.Accuracy
	if t.Seconds = t.ended.At.Sub(t.StartedAt).Seconds(); !(t.Seconds > 0) {
		return refuse(ReasonPositive, "at", "job %s ended when it started", t.JobID)
	}
	t.hasNoTime = len(t.epochs) == 0 && t.ended.DurationSeconds == 0
	return t.checkEpochs()
}
