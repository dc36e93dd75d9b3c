package main

import (
	"errors"
	"runtime/debug"
	"time"

	"courier/advisor"
	"courier/services"
)

type advisorCommand struct {
	serviceFlags
	admissionFlags
	adviceFlags
}

// admissionFlags are the policy of the cluster.
type admissionFlags struct {
	Admission string `help:"Policy for a job that would break the promise of a running job: advise reports it and lets the job start, protect refuses the job, queue holds it until it fits. Use the same policy for all advisors of a cluster." enum:"advise,protect,queue" default:"advise" env:"COURIER_ADMISSION"`
	MoveCPUs  string `name:"move-cpus" help:"Whether the CPUs of running --elastic jobs change, so that jobs at risk get CPUs that others can spare. off: never; dry-run: the changes are published and assessed, but not carried out; on: the runners carry them out. Use the same value for all advisors of a cluster." enum:"off,dry-run,on" default:"dry-run" env:"COURIER_MOVE_CPUS"`
	Objective string `help:"What the CPUs of running --elastic jobs move for. slo: that most SLOs are met; jct: that the mean completion time is short; quality: that jobs whose loss falls fastest get CPUs; cost: that jobs take few core-hours. Jobs keep the SLO that they were promised under each. Use the same value for all advisors of a cluster." enum:"${objectives}" default:"slo" env:"COURIER_OBJECTIVE"`
}

// adviceFlags configure when a running job gets new advice, and how long its events are kept.
type adviceFlags struct {
	MinChange   float64       `name:"advice-min-change" help:"Publish new advice for a running job when its predicted end moves by this share of the remaining time. A changed decision or action is always published." default:"0.05" env:"COURIER_ADVICE_MIN_CHANGE"`
	MinInterval time.Duration `name:"advice-min-interval" help:"Time after which advice with a smaller change is published, too." default:"30s" env:"COURIER_ADVICE_MIN_INTERVAL"`
	Snapshots   time.Duration `name:"snapshot-interval" help:"Time between two snapshots of the state. A start loads the newest one, and replays only the events after it." default:"5m" env:"COURIER_SNAPSHOT_INTERVAL"`
	MaxLogGiB   int64         `name:"max-job-log-gib" help:"Maximum size in GiB to which the advisor raises the limit of the stream JOB, so that it keeps the events of all running jobs; 0: never raise it." default:"64" env:"COURIER_MAX_JOB_LOG_GIB"`
}

func (f *adviceFlags) options(a admissionFlags) (advisor.Options, error) {
	if f.MinChange <= 0 || f.MinInterval <= 0 || f.Snapshots <= 0 || f.MaxLogGiB < 0 {
		return advisor.Options{}, errors.New("--advice-min-change, --advice-min-interval and " +
			"--snapshot-interval must be above 0, --max-job-log-gib at least 0")
	}
	o := advisor.Options{
		Version:           buildVersion(),
		Admission:         a.Admission,
		MoveCPUs:          a.MoveCPUs,
		Objective:         a.Objective,
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
