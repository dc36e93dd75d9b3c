package receipt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// maxNeighbours bounds the jobs that are compared with a job, newest first.
const maxNeighbours = 2000

// maxReceiptEpochs bounds the epochs behind a receipt, which covers the last ones of a longer job.
const maxReceiptEpochs = 20_000

// Read returns the receipt of a job. It fails if the job is unknown or has not ended.
func Read(ctx context.Context, b *bus.Bus, jobID string) (*JobReceipt, error) {
	s := Story{}
	q := &schemas.JobStatusRequest{JobID: jobID}
	if err := b.Request(ctx, schemas.SubjectJobStatus, q, &s.Status); err != nil {
		return nil, err
	}
	switch s.Status.State {
	case schemas.StateFinished, schemas.StateFailed, schemas.StateCancelled, schemas.StateLost:
	default:
		return nil, schemas.Errorf(schemas.CodeConflict, "id",
			"job %s is %s: there is a receipt after its end", jobID, s.Status.State)
	}
	o := bus.FollowOptions{
		Stream:   schemas.StreamJob,
		Subjects: []string{schemas.JobSubject(jobID, "*")},
	}
	var epochs []schemas.Event
	err := b.Read(ctx, o, func(r bus.Record) error {
		if _, ok := r.Event.(*schemas.Epoch); !ok {
			s.Events = append(s.Events, r.Event)
			return nil
		}
		if epochs = append(epochs, r.Event); len(epochs) == 2*maxReceiptEpochs {
			epochs = slices.Delete(epochs, 0, maxReceiptEpochs)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the events of job %s: %w", jobID, err)
	}
	s.Events = append(s.Events, epochs[max(0, len(epochs)-maxReceiptEpochs):]...)
	if err := s.addNeighbours(ctx, b); err != nil {
		return nil, err
	}
	s.askAgain(ctx, b)
	return New(&s), nil
}

// addNeighbours adds the jobs that ran on a node of the job at the same time.
func (s *Story) addNeighbours(ctx context.Context, b *bus.Bus) error {
	q := schemas.JobListRequest{Limit: schemas.MaxPage}
	for seen := 0; seen < maxNeighbours; {
		var page schemas.JobList
		if err := b.Request(ctx, schemas.SubjectJobList, &q, &page); err != nil {
			return fmt.Errorf("list the jobs: %w", err)
		}
		for i := range page.Jobs {
			if j := &page.Jobs[i]; s.isNeighbour(j) {
				s.Neighbours = append(s.Neighbours, *j)
			}
		}
		seen += len(page.Jobs)
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	return nil
}

func (s *Story) isNeighbour(j *schemas.JobStatus) bool {
	own := &s.Status
	return j.JobID != own.JobID && j.StartedAt != nil && own.StartedAt != nil &&
		sharesNode(j.Nodes, own.Nodes) &&
		(own.EndedAt == nil || j.StartedAt.Before(*own.EndedAt)) &&
		(j.EndedAt == nil || j.EndedAt.After(*own.StartedAt))
}

// askAgain asks for the advice to the same request now. A job without a request has none, and an
// unavailable advisor leaves the answer out.
func (s *Story) askAgain(ctx context.Context, b *bus.Bus) {
	for _, e := range s.Events {
		submitted, ok := e.(*schemas.Submitted)
		if !ok {
			continue
		}
		q := submitted.Request
		q.JobID = ""
		q.Nodes = s.Status.Nodes
		var a schemas.Advice
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := b.Request(ctx, schemas.SubjectJobPredict, &q, &a)
		if err == nil || errors.Is(err, schemas.ErrConflict) {
			s.Now = &a
		}
		return
	}
}
