package main

import (
	"net/http"

	"courier/advisor"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	admissionFlags
}

// admissionFlags are the policy of the cluster.
type admissionFlags struct {
	Admission string `help:"What happens to a job that would break a promise to a running one: advise says so, protect refuses it, queue holds it until it fits. The same for all advisors of a cluster." enum:"advise,protect,queue" default:"advise" env:"COURIER_ADMISSION"`
}

func (c *advisorCommand) Run(w *world) error {
	return c.serve(w, "advisor", func(r *room) (services.Part, func() error, http.Handler, error) {
		a := advisor.New(r.bus, advisor.Options{Version: semanticVersion(), Admission: c.Admission}, r.log, r.reg)
		return services.Part{Name: "advisor", Run: a.Run}, a.Ready, nil, nil
	})
}

// semanticVersion is the version as NATS micro services accept it.
func semanticVersion() string { return buildVersion() }
