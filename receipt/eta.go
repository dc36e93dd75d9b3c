package receipt

import (
	"context"
	"fmt"
	"io"
	"time"

	"courier/bus"
	"courier/schemas"
)

// ETA is when a running job is predicted to end.
type ETA struct {
	JobID string        `json:"job_id"`
	State schemas.State `json:"state"`
	// EndsAt is the median; nil if the end is unknown.
	EndsAt *time.Time `json:"ends_at,omitempty"`
	// LatestAt is the upper bound at the confidence; nil if it is unknown.
	LatestAt   *time.Time `json:"latest_at,omitempty"`
	Confidence float64    `json:"confidence,omitempty"`

	EpochsDone  uint32     `json:"epochs_done"`
	Epochs      uint32     `json:"epochs"`
	DeadlineAt  *time.Time `json:"deadline_at,omitempty"`
	Probability *float64   `json:"probability,omitempty"` // of meeting the SLO
}

// ReadETA returns the predicted end of a job from its last advice. A job that does not run has none.
func ReadETA(ctx context.Context, b *bus.Bus, jobID string) (*ETA, error) {
	var s schemas.JobStatus
	q := &schemas.JobStatusRequest{JobID: jobID}
	if err := b.Request(ctx, schemas.SubjectJobStatus, q, &s); err != nil {
		return nil, err
	}
	e := &ETA{
		JobID:       s.JobID,
		State:       s.State,
		EpochsDone:  s.EpochsDone,
		Epochs:      s.Epochs,
		DeadlineAt:  s.DeadlineAt,
		Probability: s.Probability,
	}
	if s.State != schemas.StateRunning {
		return e, nil
	}
	e.EndsAt = s.PredictedEndAt
	records, err := b.Last(ctx, schemas.StreamAdvice, schemas.JobSubject(jobID, schemas.EventAdvice))
	if err != nil {
		return nil, fmt.Errorf("read the advice of job %s: %w", jobID, err)
	}
	for _, r := range records {
		if a, ok := r.Event.(*schemas.Advice); ok && a.Run == s.Run {
			e.addAdvice(a, &s)
		}
	}
	if e.LatestAt == nil {
		e.addSpread(ctx, b, time.Now())
	}
	return e, nil
}

// addSpread sets the upper bound of a job without advice since its start: the time that is left has
// the same relative spread as in the answer to its request.
func (e *ETA) addSpread(ctx context.Context, b *bus.Bus, now time.Time) {
	subject := schemas.JobSubject(e.JobID, schemas.EventSubmitted)
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
	if end := after(a.At, running.PredictedSeconds); end != nil {
		e.EndsAt = end
	}
	e.LatestAt = after(a.At, running.UpperBoundSeconds)
}

// WriteText writes the prediction in a sentence, with the time left at an instant.
func (e *ETA) WriteText(w io.Writer, now time.Time) error {
	text := fmt.Sprintf("job %s is %s, epoch %d of %d", e.JobID, e.State, e.EpochsDone, e.Epochs)
	switch {
	case e.State != schemas.StateRunning:
	case e.EndsAt == nil:
		text += "; its end is not known yet"
	default:
		text += fmt.Sprintf("; it ends about %s (in %s)", clock(*e.EndsAt), left(*e.EndsAt, now))
		if e.LatestAt != nil {
			text += fmt.Sprintf(", before %s (in %s) with probability %g",
				clock(*e.LatestAt), left(*e.LatestAt, now), e.Confidence)
		}
	}
	if e.DeadlineAt != nil && e.State == schemas.StateRunning {
		text += "; deadline " + clock(*e.DeadlineAt)
		if e.Probability != nil {
			text += ", met with probability " + schemas.FormatProbability(*e.Probability)
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func left(t, now time.Time) string {
	return max(0, t.Sub(now)).Round(time.Second).String()
}
