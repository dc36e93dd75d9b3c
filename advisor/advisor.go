package advisor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of an advisor. The tags are those of the flags of courier advisor. A zero field means a
// default; see withDefaults.
type Options struct {
	Policy
	// If SnapshotEvents events arrive sooner, snapshots are up to ten times as frequent.
	SnapshotInterval time.Duration `kong:"-"`
	SnapshotEvents   uint64        `kong:"-"`

	Version string        `kong:"-"` // of the program, for nats micro
	Check   time.Duration `kong:"-"` // interval of checks for silent jobs
}

// Policy is the policy of a cluster, the same for all its advisors.
type Policy struct {
	Admission string `help:"Policy for a job that would break the promise of a running job: advise reports it and lets the job start, protect refuses the job, queue holds it until it fits. Use the same policy for all advisors of a cluster." enum:"advise,protect,queue" default:"advise" env:"COURIER_ADMISSION"`
	MoveCPUs  string `name:"move-cpus" help:"Whether the CPUs of running --elastic jobs change, so that jobs at risk get CPUs that others can spare. off: never; dry-run: the changes are published, but not carried out; on: the runners carry them out. Use the same value for all advisors of a cluster." enum:"off,dry-run,on" default:"dry-run" env:"COURIER_MOVE_CPUS"`
	Objective string `help:"What the CPUs of running --elastic jobs move for. slo: that most SLOs are met; jct: that the mean completion time is short; quality: that jobs whose loss falls fastest get CPUs; cost: that jobs take few core-hours; efficiency: that CPUs go to the jobs that they make faster, and stay free otherwise. Jobs keep the SLO that they were promised under each. Use the same value for all advisors of a cluster." enum:"${objectives}" default:"slo" env:"COURIER_OBJECTIVE"`
}

// withDefaults returns the options with defaults in place of zero fields.
func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.Admission = cmp.Or(o.Admission, schemas.AdmissionAdvise)
	o.MoveCPUs = cmp.Or(o.MoveCPUs, MovesDryRun)
	o.Objective = cmp.Or(o.Objective, shares.ObjectiveSLO)
	o.Check = cmp.Or(o.Check, time.Second)
	o.SnapshotInterval = cmp.Or(o.SnapshotInterval, 5*time.Minute)
	o.SnapshotEvents = cmp.Or(o.SnapshotEvents, 20_000)
	return o
}

// Advisor answers job requests and watches running jobs.
type Advisor struct {
	bus            eventBus
	clock          func() time.Time // of this machine
	offset         atomic.Int64     // of the server's clock, in ns
	log            *slog.Logger
	metrics        *metrics
	o              Options
	regressors     atomic.Pointer[decide.Regressors]
	outbox         *outbox
	newestSnapshot snapshotRecord
	replayTo       atomic.Uint64 // last sequence of JOB at the start
	caughtUp       chan struct{} // closed at the end of the replay
	answering      chan struct{} // closed when requests are answered
	admitting      chan struct{} // full during an admission
	ticket         seenTicket    // guarded by admitting

	// advising is held from reading the state until the advice from it is in the outbox. Otherwise it could
	// replace a newer one, such as a move. It is locked before mu.
	advising sync.Mutex

	mu        sync.RWMutex
	cluster   *cluster.Cluster
	applied   uint64            // last applied sequence of JOB
	appliedAt time.Time         // when the stream stored that event
	advanced  chan struct{}     // closed and replaced when applied grows
	heard     map[string]uint32 // lost jobs with a heartbeat since the last check, and their runs

	listeningSince time.Time // every event and heartbeat sent since then has been received
}

// snapshotRecord describes the newest snapshot. Run uses it at the start and at the end, and
// keepSnapshots in between.
type snapshotRecord struct {
	sequence uint64    // its last event
	at       time.Time // when this advisor wrote or loaded it
	stream   time.Time // creation time of the stream that the state comes from
}

// seenTicket is the revision of a ticket, and when this advisor first read it. Other advisors' clocks may
// be wrong.
type seenTicket struct {
	revision uint64
	at       time.Time // by the monotonic clock
}

// New returns an advisor that does not run yet.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) *Advisor {
	return newAdvisor(b, o, log, reg)
}

func newAdvisor(b eventBus, o Options, log *slog.Logger, reg prometheus.Registerer) *Advisor {
	a := &Advisor{
		bus:       b,
		clock:     time.Now,
		log:       log,
		metrics:   newMetrics(reg),
		o:         o.withDefaults(),
		caughtUp:  make(chan struct{}),
		answering: make(chan struct{}),
		admitting: make(chan struct{}, 1),
		cluster:   cluster.New(),
		advanced:  make(chan struct{}),
		heard:     map[string]uint32{},
	}
	a.outbox = newOutbox(b.Publish, a.metrics, log)
	a.regressors.Store(&decide.Regressors{})
	return a
}

// Ready returns nil when the advisor answers requests, otherwise the progress of the replay.
func (a *Advisor) Ready() error {
	select {
	case <-a.answering:
		return nil
	default:
	}
	a.mu.RLock()
	applied := a.applied
	a.mu.RUnlock()
	return fmt.Errorf("advisor: still replaying the event log (event %d of %d); retry in a moment",
		applied, a.replayTo.Load())
}

// Answering returns a channel that is closed when the advisor answers requests.
func (a *Advisor) Answering() <-chan struct{} { return a.answering }

// Options.MoveCPUs.
const (
	MovesOff    = "off"     // the CPUs of elastic jobs do not change
	MovesDryRun = "dry-run" // changes are published, but not carried out
	MovesOn     = "on"
)

// publish publishes an event without retrying, and logs an error.
func (a *Advisor) publish(ctx context.Context, e schemas.Event) {
	if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}
