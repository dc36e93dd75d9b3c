package main

import (
	"errors"
	"runtime/debug"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	admissionFlags
	adviceFlags
}

// admissionFlags are the policy of the cluster.
type admissionFlags struct {
	Admission string `help:"Reaction to a job that would break a promise to a running one: advise warns, protect refuses the job, queue holds it until it fits. All advisors of a cluster use the same." enum:"advise,protect,queue" default:"advise" env:"COURIER_ADMISSION"`
	Promise   string `help:"Promise of requests that name none: each keeps the SLO of every job with its confidence, mean only that of the average job, so that more jobs get a promise. All advisors of a cluster use the same." enum:"each,mean" default:"each" env:"COURIER_PROMISE"`
}

// adviceFlags set when a running job gets new advice, and how its events are kept.
type adviceFlags struct {
	MinChange   float64       `name:"advice-min-change" help:"Share of the remaining time by which the predicted end of a running job must move for a new advice. A changed decision or action is always published." default:"0.05" env:"COURIER_ADVICE_MIN_CHANGE"`
	MinInterval time.Duration `name:"advice-min-interval" help:"Time after which an advice with a smaller change is published again." default:"30s" env:"COURIER_ADVICE_MIN_INTERVAL"`
	Snapshots   time.Duration `name:"snapshot-interval" help:"Time between two snapshots of the state, which a start loads instead of replaying the event log." default:"5m" env:"COURIER_SNAPSHOT_INTERVAL"`
	MaxLogGiB   int64         `name:"max-job-log-gib" help:"Maximum size in GiB to which the stream of job events grows to keep the events of all running jobs; 0: it never grows." default:"64" env:"COURIER_MAX_JOB_LOG_GIB"`
}

// options returns the options of an advisor.
func (f *adviceFlags) options(a admissionFlags) (advisor.Options, error) {
	if f.MinChange <= 0 || f.MinInterval <= 0 || f.Snapshots <= 0 || f.MaxLogGiB < 0 {
		return advisor.Options{}, errors.New("--advice-min-change, --advice-min-interval and " +
			"--snapshot-interval must be above 0, --max-job-log-gib at least 0")
	}
	o := advisor.Options{
		Version:           buildVersion(),
		Admission:         a.Admission,
		Promise:           schemas.Promise(a.Promise),
		AdviceMinChange:   f.MinChange,
		AdviceMinInterval: f.MinInterval,
		SnapshotInterval:  f.Snapshots,
		MaxLogBytes:       f.MaxLogGiB << 30,
	}
	if f.MaxLogGiB == 0 {
		o.MaxLogBytes = -1
	}
	return o, nil
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
	o, err := c.options(c.admissionFlags)
	if err != nil {
		return err
	}
	return c.serve(w, "advisor", func(r *serviceEnvironment) (builtService, error) {
		a := advisor.New(r.bus, o, r.log, r.reg)
		return builtService{part: services.Part{Name: "advisor", Run: a.Run}, ready: a.Ready}, nil
	})
}
