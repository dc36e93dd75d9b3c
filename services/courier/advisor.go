package main

import (
	"runtime/debug"

	"courier/advisor"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	advisor.Options
}

// advisorMemory is the soft memory limit of an advisor in bytes.
const advisorMemory = 256 << 20

// advisorGrowth is the growth of an advisor's heap between garbage collections, in percent. With
// the default, a small cluster would need a collection every few megabytes; the heap of a large one
// is bounded by advisorMemory.
const advisorGrowth = 400

func (c *advisorCommand) Run(w *environment) error {
	if w.getenv("GOGC") == "" {
		debug.SetGCPercent(advisorGrowth)
	}
	if w.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(advisorMemory)
	}
	o := c.Options
	o.Version = buildVersion()
	return c.serve(w, "advisor", func(r *serviceEnvironment) (builtService, error) {
		a := advisor.New(r.bus, o, r.log, r.reg)
		return builtService{part: services.Part{Name: "advisor", Run: a.Run}, ready: a.Ready}, nil
	})
}
