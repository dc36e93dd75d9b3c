package main

import (
	"net/http"

	"courier/advisor"
	"courier/schemas"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	admissionFlags
}

// admissionFlags are the policy of the cluster.
type admissionFlags struct {
	Admission string `help:"What happens to a job that would break a promise to a running one: advise says so, protect refuses it, queue holds it until it fits. The same for all advisors of a cluster." enum:"advise,protect,queue" default:"advise" env:"COURIER_ADMISSION"`
	Promise   string `help:"What the confidence of a request that does not say is of: each promise, so that each job keeps its SLO with it, or the mean of all promises that ask for the same, so that more jobs get one. The same for all advisors of a cluster." enum:"each,mean" default:"each" env:"COURIER_PROMISE"`
}

func (c *advisorCommand) Run(w *world) error {
	return c.serve(w, "advisor", func(r *room) (services.Part, func() error, http.Handler, error) {
		a := advisor.New(r.bus, advisor.Options{Version: semanticVersion(), Admission: c.Admission, Promise: schemas.Promise(c.Promise)}, r.log, r.reg)
		return services.Part{Name: "advisor", Run: a.Run}, a.Ready, nil, nil
	})
}

// semanticVersion is the version as NATS micro services accept it.
func semanticVersion() string { return buildVersion() }
