package advisor

import (
	"errors"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// publishAsPerson publishes an event as a person does.
func publishAsPerson(t *testing.T, b *bus.Bus, person string, e schemas.Event) error {
	t.Helper()
	var reply schemas.Receipt
	err := b.RequestFor(within(t), person, e.Subject(), e, &reply)
	if err == nil && reply.Sequence == 0 {
		t.Errorf("receipt for %s's event %s has no sequence", person, e.ID())
	}
	return err
}

// lastSequence returns the last sequence of JOB.
func lastSequence(t *testing.T, b *bus.Bus) uint64 {
	t.Helper()
	last, err := b.LastSequence(within(t), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func TestAdvisor_AcceptsEventsFromTheOwnerOfTheJobOnly(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	q := schemas.JobRequest{
		JobID:  "mine",
		Model:  advisortest.Model,
		CPUs:   schemas.CPUs{2},
		Epochs: 10,
		SLO:    schemas.Duration(time.Minute),
	}
	var advice schemas.Advice
	if err := b.RequestFor(within(t), "ada", schemas.SubjectJobSubmit, &q, &advice); err != nil {
		t.Fatal(err)
	}
	if s := status(t, b, "mine"); s.User != "ada" {
		t.Errorf("user of a job that ada submitted: got %q, want ada", s.User)
	}
	stranger := advisortest.StartedEvent("unsaid", 1)
	stranger.User = "bob"
	foreign := advisortest.EpochEvent("his", 1, 1) // an event of bob's job with an ID of ada's job
	foreign.EventID = schemas.EpochID("mine", 1, 1)
	if err := publishAsPerson(t, b, "bob", advisortest.StartedEvent("his", 1)); err != nil {
		t.Fatalf("start of an unsubmitted job by bob: %v", err)
	}
	if s := status(t, b, "his"); s.User != "bob" {
		t.Errorf("user of a job that bob started: got %q, want bob", s.User)
	}
	const before = 2 // the submission and the start
	if n := lastSequence(t, b); n != before {
		t.Fatalf("got %d job events in the log, want %d", n, before)
	}
	var s schemas.JobStatus
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"submit in another's name": {
			b.RequestFor(within(t), "bob", schemas.SubjectJobSubmit, &schemas.JobRequest{
				JobID:  "third",
				User:   "ada",
				Model:  advisortest.Model,
				CPUs:   schemas.CPUs{2},
				Epochs: 10,
			}, &advice),
			schemas.ErrForbidden,
		},
		"submit under another's id": {
			b.RequestFor(within(t), "bob", schemas.SubjectJobSubmit, &q, &advice),
			schemas.ErrConflict,
		},
		"cancel another's job": {
			b.RequestFor(within(t), "bob", schemas.SubjectJobCancel,
				&schemas.JobCancelRequest{JobID: "mine"}, &s),
			schemas.ErrForbidden,
		},
		"start another's job": {
			publishAsPerson(t, b, "bob", advisortest.StartedEvent("mine", 1)), schemas.ErrForbidden,
		},
		"an epoch of another's job": {
			publishAsPerson(t, b, "bob", advisortest.EpochEvent("mine", 1, 1)), schemas.ErrForbidden,
		},
		"the end of another's job": {
			publishAsPerson(t, b, "bob", advisortest.FinishedEvent("mine", 1)), schemas.ErrForbidden,
		},
		"an epoch of a job of nobody": {
			publishAsPerson(t, b, "bob", advisortest.EpochEvent("nobodys", 1, 1)), schemas.ErrForbidden,
		},
		"a start in another's name":     {publishAsPerson(t, b, "ada", stranger), schemas.ErrForbidden},
		"under the identity of another": {publishAsPerson(t, b, "bob", foreign), schemas.ErrInvalid},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s = %v, want %v", what, c.err, c.want)
		}
	}
	if after := lastSequence(t, b); after != before {
		t.Errorf("got %d events in the log from refused requests, want 0", after-before)
	}
	for _, e := range []schemas.Event{advisortest.StartedEvent("mine", 1), advisortest.EpochEvent("mine", 1, 1)} {
		if err := publishAsPerson(t, b, "ada", e); err != nil {
			t.Errorf("publish %[1]s as the owner: %[2]v", e.ID(), err)
		}
	}
	await(t, "ada's epoch", func() bool { return status(t, b, "mine").EpochsDone == 1 })
	if err := b.RequestFor(within(t), "ada", schemas.SubjectJobCancel,
		&schemas.JobCancelRequest{JobID: "mine"}, &s); err != nil ||
		s.State != schemas.StateCancelled {
		t.Errorf("cancel by the owner = %+v, %v, want cancelled", s, err)
	}
	if err := b.Request(within(t), schemas.SubjectJobCancel,
		&schemas.JobCancelRequest{JobID: "his"}, &s); err != nil ||
		s.State != schemas.StateCancelled {
		t.Errorf("cancel by the operator = %+v, %v, want cancelled", s, err)
	}
}
