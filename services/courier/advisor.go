package main

import (
	"errors"
	"runtime/debug"

	"courier/advisor"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	advisor.Options
	MaxLogGiB int64 `name:"max-job-log-gib" help:"Maximum size in GiB to which the advisor raises the limit of the stream JOB, so that it keeps the events of all running jobs; 0: never raise it." default:"64" env:"COURIER_MAX_JOB_LOG_GIB"`
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
	if o.AdviceMinChange <= 0 || o.AdviceMinInterval <= 0 || o.SnapshotInterval <= 0 || c.MaxLogGiB < 0 {
		return errors.New("--advice-min-change, --advice-min-interval and --snapshot-interval must be" +
			" above 0, --max-job-log-gib at least 0")
	}
	o.Version = buildVersion()
	if o.MaxLogBytes = c.MaxLogGiB << 30; o.MaxLogBytes == 0 {
		o.MaxLogBytes = -1
	}
	return c.serve(w, "advisor", func(r *serviceEnvironment) (builtService, error) {
		a := advisor.New(r.bus, o, r.log, r.reg)
		return builtService{part: services.Part{Name: "advisor", Run: a.Run}, ready: a.Ready}, nil
	})
}
