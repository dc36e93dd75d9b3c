package advisor

import (
	"context"
	"runtime"
	"slices"

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
	predict := bus.Handle(schemas.SubjectJobPredict, a.predict) // changes nothing: each processor answers one
	endpoints = append(endpoints, slices.Repeat([]bus.Endpoint{predict}, runtime.GOMAXPROCS(0))...)
	return a.bus.Serve(ctx, bus.Service{
		Name:        "courier-advisor",
		Version:     a.o.Version,
		Description: "answers job requests and watches running jobs",
		Ready:       func() { close(a.answering) },
		Endpoints:   endpoints,
	})
}
