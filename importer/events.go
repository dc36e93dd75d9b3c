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
	place   Place
	job     string
	run     uint32
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
		t = &eventRun{place: at, job: stamp.JobID, run: stamp.Run}
		s.runs[key], s.order = t, append(s.order, t)
	}
	event, err := schemas.Parse(subject, body)
	var refusal *schemas.Error
	if errors.As(err, &refusal) {
		t.place, t.broken = at, refuse(ReasonInvalid, refusal.Field, "%s", refusal.Message)
		return
	}
	t.add(at, event)
}

// add adds an event and ignores duplicates.
func (t *eventRun) add(at Place, event schemas.Event) {
	want := ""
	switch e := event.(type) {
	case *schemas.Started:
		t.started, want = e, schemas.StartedID(t.job, t.run)
	case *schemas.Epoch:
		want = schemas.EpochID(t.job, t.run, e.Epoch)
		if n := len(t.epochs); n == 0 || t.epochs[n-1].Epoch != e.Epoch {
			t.epochs = append(t.epochs, e)
		}
	case *schemas.Ended:
		t.ended, want = e, schemas.EndedID(t.job, t.run, e.Outcome)
	}
	if event.ID() != want && t.broken == nil {
		t.place, t.broken = at, refuse(ReasonInvalid, "event_id",
			"%q is not the ID of this event, %q", clip(event.ID()), want)
	}
}

// end converts the groups of events to runs.
func (s *eventRuns) end() {
	for _, t := range s.order {
		run, why := t.build()
		if why != nil {
			s.reject(t.place, why)
			continue
		}
		s.accept(run)
	}
}

// build returns a run that keeps its events.
func (t *eventRun) build() (*PastRun, *Refusal) {
	switch {
	case t.broken != nil:
		return nil, t.broken
	case t.run == 0:
		return nil, refuse(ReasonInvalid, "run", "0 is not a run number: runs are numbered from 1")
	case t.ended == nil:
		return nil, refuse(ReasonUnfinished, "",
			"run %d of job %s has no finished, failed or cancelled event", t.run, t.job)
	case t.started == nil && len(t.epochs) == 0:
		return nil, refuse(ReasonMissing, FieldStartedAt,
			"run %d of job %s has neither a started event nor an epoch", t.run, t.job)
	}
	r := &PastRun{
		Place:    t.place,
		SourceID: t.job,
		JobID:    t.job,
		Number:   t.run,
		Setting:  t.ended.Setting,
		Outcome:  t.ended.Outcome,
		Startup:  t.ended.StartupSeconds,
		Accuracy: t.ended.Accuracy,
	}
	if t.started != nil {
		r.StartedAt, r.Setting, r.kept = t.started.At, t.started.Setting, append(r.kept, t.started)
	} else {
		first := t.epochs[0]
		r.Setting, r.StartedAt = first.Setting, first.At.Add(-duration(first.DurationSeconds))
	}
	last := r.StartedAt
	for _, e := range t.epochs {
		if e.At.Before(last) {
			return nil, refuse(ReasonOrder, "at",
				"epoch %d of job %s ended at %s, before the previous event", e.Epoch, t.job, e.At)
		}
		last = e.At
		r.Epochs, r.kept = append(r.Epochs, PastEpoch{
			Number:   e.Epoch,
			Seconds:  e.DurationSeconds,
			Source:   e.DurationSource,
			Accuracy: e.Accuracy,
		}), append(r.kept, e)
	}
	if t.ended.At.Before(last) {
		return nil, refuse(ReasonOrder, "at", "job %s ended at %s, before its start or last epoch",
			t.job, t.ended.At)
	}
	r.kept = append(r.kept, t.ended)
	if r.Seconds = t.ended.At.Sub(r.StartedAt).Seconds(); !(r.Seconds > 0) {
		return nil, refuse(ReasonPositive, "at", "job %s ended when it started", t.job)
	}
	r.hasNoTime = len(t.epochs) == 0 && t.ended.DurationSeconds == 0
	return r, r.checkEpochs()
}
