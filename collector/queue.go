package collector

import (
	"cmp"
	"context"
	"fmt"
	"os/signal"

	"courier/bus"
	"courier/schemas"
)

// admission follows what the cluster's policy said to the job: it returns when
// the job may start, with the advice that says so. A refusal, a cancel or an end
// of ctx is an error; whoever gives up while it waits cancels the job.
func (j *job) admission(ctx context.Context, b *bus.Bus, advice *schemas.Advice) (*schemas.Advice, error) {
	v := advice.Admission
	if v == nil || v.Verdict == schemas.Admitted {
		return advice, nil
	}
	j.screen.print(adviceText(advice))
	if v.Verdict == schemas.Refused {
		return nil, &schemas.Error{Code: schemas.CodeConflict, Message: fmt.Sprintf("job %s is %s", advice.JobID, advice.Message)}
	}
	j.screen.say("job %s waits for its turn, number %d in the queue", advice.JobID, v.Position)
	if j.o.ForwardSignals {
		signal.Notify(j.signals, forwarded...)
		defer signal.Stop(j.signals)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	said := make(chan schemas.Event, 1)
	followed := make(chan error, 1)
	go func() { followed <- b.Follow(waiting, turnOf(advice.JobID), firstTo(said)) }()
	defer func() { stop(); <-followed }()
	for {
		select {
		case e := <-said:
			switch e := e.(type) {
			case *schemas.Advice:
				j.screen.say("job %s may start", e.JobID)
				return e, nil
			case *schemas.Ended:
				return nil, fmt.Errorf("job %s was cancelled while it waited: %s", e.JobID, cmp.Or(e.Reason, "by request"))
			}
		case s := <-j.signals:
			if ends(s) {
				return nil, j.giveUp(ctx, b, fmt.Sprintf("interrupted by signal: %v", s))
			}
		case <-ctx.Done():
			return nil, j.giveUp(ctx, b, "courier run was told to end")
		}
	}
}

// turnOf follows what may end the waiting of a job, however long ago it was said.
func turnOf(job string) bus.FollowOptions {
	return bus.FollowOptions{Stream: schemas.StreamJob, LastPerSubject: true,
		Subjects: []string{schemas.JobSubject(job, schemas.EventAdvice), schemas.JobSubject(job, schemas.EventCancelled)}}
}

// firstTo hands on the first event that ends the waiting.
func firstTo(said chan<- schemas.Event) func(bus.Record) error {
	return func(r bus.Record) error {
		if a, ok := r.Event.(*schemas.Advice); ok && a.Action != schemas.ActionStart {
			return nil
		}
		select {
		case said <- r.Event:
		default:
		}
		return nil
	}
}

// giveUp cancels a job that waits, so that nobody keeps room for it.
func (j *job) giveUp(ctx context.Context, b *bus.Bus, reason string) error {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.o.Patience)
	defer cancel()
	id := j.result.JobID
	var status schemas.JobStatus
	if err := b.Request(asking, schemas.SubjectJobCancel, &schemas.JobCancelRequest{JobID: id, Reason: reason}, &status); err != nil {
		return fmt.Errorf("job %s is left in the queue: %w", id, err)
	}
	return fmt.Errorf("job %s was cancelled while it waited: %s", id, reason)
}
