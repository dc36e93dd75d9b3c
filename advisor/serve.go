package advisor

import (
	"context"

	"courier/bus"
	"courier/schemas"
)

// serve answers requests after the replay.
func (a *Advisor) serve(ctx context.Context) error {
	select {
	case <-a.caughtUp:
	case <-ctx.Done():
		return nil
	}
	if a.hasAdmissionPolicy() {
		if a.lockAdmission(ctx) != nil {
			return nil // ctx has ended
		}
		_, _, _ = a.readTicket(ctx) // an admission that was never recorded is waited for from now on
		a.unlockAdmission()
	}
	endpoints := []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, a.submit),
		bus.Handle(schemas.SubjectJobPredict, a.predict),
		bus.Handle(schemas.SubjectJobStatus, a.status),
		bus.Handle(schemas.SubjectJobList, a.list),
		bus.Handle(schemas.SubjectJobCancel, a.cancelJob),
		bus.Handle(schemas.SubjectJobScore, a.scoreReply),
		bus.HandlePerson(schemas.SubjectJobSubmit, a.personSubmit),
		bus.HandlePerson(schemas.SubjectJobCancel, a.personCancel),
	}
	for _, event := range schemas.PersonalEvents() {
		subject := schemas.JobSubject("*", event)
		endpoints = append(endpoints, bus.HandleEvent(subject, a.personEvent))
	}
	return a.bus.Serve(ctx, bus.Service{
		Name:        "courier-advisor",
		Version:     a.o.Version,
		Description: "answers job requests and watches running jobs",
		Ready:       func() { close(a.answering) },
		Endpoints:   endpoints,
	})
}
