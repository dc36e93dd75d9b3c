package main

import (
	"net/http"

	"courier/advisor"
	"courier/services"
)

type advisorCommand struct{ serviceFlags }

func (c *advisorCommand) Run(w *world) error {
	return c.serve(w, "advisor", func(r *room) (services.Part, func() error, http.Handler, error) {
		a := advisor.New(r.bus, advisor.Options{Version: semanticVersion()}, r.log, r.reg)
		return services.Part{Name: "advisor", Run: a.Run}, a.Ready, nil, nil
	})
}

// semanticVersion is the version as NATS micro services accept it.
func semanticVersion() string { return buildVersion() }
