package receipt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// ETA is when a running job is predicted to end.
type ETA struct {
	// EndsAt is the median; nil if the end is unknown.
	EndsAt *time.Time `json:"ends_at,omitempty"`
	// LatestAt is the upper bound at the confidence; nil if it is unknown.
	LatestAt   *time.Time `json:"latest_at,omitempty"`
	Confidence float64    `json:"confidence,omitempty"`
}

// ReadETA returns the predicted end of a running job, and its upper bound by the last advice, if the user may
// read it.
func ReadETA(ctx context.Context, b *bus.Bus, s *schemas.JobStatus) (*ETA, error) {
	e := &ETA{EndsAt: s.PredictedEndAt}
	subject := schemas.JobSubject(s.JobID, schemas.EventAdvice)
	records, err := b.Last(ctx, schemas.StreamAdvice, subject)
	if err != nil && !errors.Is(err, schemas.ErrForbidden) {
		return nil, fmt.Errorf("read the advice of job %s: %w", s.JobID, err)
	}
	for _, r := range records {
		if a, ok := r.Event.(*schemas.Advice); ok && a.Run == s.Run {
			e.addAdvice(a, s)
		}
	}
	if e.LatestAt == nil {
		e.addSpread(ctx, b, s.JobID, time.Now())
	}
	return e, nil
}

// addSpread sets the upper bound of a job without advice since its start: the time that is left has
// the same relative spread as in the answer to its request.
func (e *ETA) addSpread(ctx context.Context, b *bus.Bus, jobID string, now time.Time) {
	subject := schemas.JobSubject(jobID, schemas.EventSubmitted)
	records, err := b.Last(ctx, schemas.StreamJob, subject)
	if err != nil || len(records) == 0 || e.EndsAt == nil {
		return
	}
	s, ok := records[0].Event.(*schemas.Submitted)
	if !ok || s.Advice.Chosen == nil {
		return
	}
	c := s.Advice.Chosen
	if c.PredictedSeconds == nil || c.UpperBoundSeconds == nil || !(*c.PredictedSeconds > 0) {
		return
	}
	ratio := *c.UpperBoundSeconds / *c.PredictedSeconds
	latest := now.Add(time.Duration(ratio * float64(e.EndsAt.Sub(now))))
	if latest.After(*e.EndsAt) {
		e.LatestAt, e.Confidence = &latest, s.Advice.Confidence
	}
}

// addAdvice takes the figures of the alternative that the job runs with.
func (e *ETA) addAdvice(a *schemas.Advice, s *schemas.JobStatus) {
	running := a.Chosen
	if r := a.Running(s.BatchSize, s.CPUs); r != nil {
		running = r
	}
	if running == nil {
		return
	}
	e.Confidence = a.Confidence
	e.EndsAt = cmp.Or(e.EndsAt, after(a.At, running.PredictedSeconds))
	latest := after(a.At, running.UpperBoundSeconds)
	if latest != nil && (e.EndsAt == nil || latest.After(*e.EndsAt)) { // the advice may be older than the prediction
		e.LatestAt = latest
	}
}

// Text describes the prediction, with the time left at an instant.
func (e *ETA) Text(now time.Time) string {
	if e.EndsAt == nil {
		return "not known yet"
	}
	text := fmt.Sprintf("about %s (%s)", clock(*e.EndsAt), left(*e.EndsAt, now))
	if e.LatestAt != nil {
		text += fmt.Sprintf(", before %s (%s) with probability %g",
			clock(*e.LatestAt), left(*e.LatestAt, now), e.Confidence)
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func left(t, now time.Time) string {
	seconds := t.Sub(now).Round(time.Second).Seconds()
	if seconds < 0 {
		return schemas.FormatSeconds(-seconds) + " ago"
	}
	return "in " + schemas.FormatSeconds(seconds)
}
