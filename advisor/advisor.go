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

// Options of an advisor. A zero field means its default.
type Options struct {
	Version string        // of the program, for nats micro; default "0.0.0"
	Check   time.Duration // interval of checks for silent jobs; default 1 s

	// Admission is the policy of the cluster, the same for all its advisors: one of
	// schemas.AdmissionAdvise (the default), AdmissionProtect and AdmissionQueue.
	Admission string

	// MoveCPUs is whether the CPUs of elastic jobs change, the same for all advisors of the cluster:
	// one of MovesOff, MovesDryRun (the default) and MovesOn.
	MoveCPUs string

	// Objective is what the moves of CPUs are planned for, the same for all advisors of the cluster:
	// one of Objectives, by default ObjectiveSLO.
	Objective string

	// AdviceMinChange is the share of the remaining time by which the predicted end of a
	// running job must move for new advice; default 0.05. A changed decision or action is
	// always published.
	AdviceMinChange float64

	// AdviceMinInterval is the time after which advice with a smaller change is published
	// again; default 30 s.
	AdviceMinInterval time.Duration

	// SnapshotInterval is the interval of snapshots of the state while events arrive; default
	// 5 min. If SnapshotEvents events arrive sooner, snapshots are up to ten times as frequent.
	SnapshotInterval time.Duration
	SnapshotEvents   uint64 // default 20,000

	// MaxLogBytes bounds the size to which the advisor widens the JOB stream, so that the
	// stream keeps the events of all running jobs; default 64 GiB. A negative value disables
	// widening.
	MaxLogBytes int64
}

// Defaults for publishing changed advice. After each epoch the predicted end moves by about the
// scatter of epochs divided by the square root of the number of observed epochs. With the usual
// scatter of 5 percent this is less than 2 percent of the remaining time.
const (
	defaultMinChange   = 0.05             // of the remaining time
	defaultMinInterval = 30 * time.Second // until an unchanged advice is repeated
)

// withDefaults returns the options with defaults in place of zero fields.
func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.Admission = cmp.Or(o.Admission, schemas.AdmissionAdvise)
	o.MoveCPUs = cmp.Or(o.MoveCPUs, MovesDryRun)
	o.Objective = cmp.Or(o.Objective, shares.ObjectiveSLO)
	o.Check = positive(o.Check, time.Second)
	o.AdviceMinChange = positive(o.AdviceMinChange, defaultMinChange)
	o.AdviceMinInterval = positive(o.AdviceMinInterval, defaultMinInterval)
	o.SnapshotInterval = positive(o.SnapshotInterval, 5*time.Minute)
	o.SnapshotEvents = cmp.Or(o.SnapshotEvents, 20_000)
	o.MaxLogBytes = cmp.Or(o.MaxLogBytes, 64<<30)
	return o
}

func positive[V cmp.Ordered](v, otherwise V) V {
	var zero V
	if v > zero {
		return v
	}
	return otherwise
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

	mu        sync.RWMutex
	cluster   *cluster.Cluster
	applied   uint64                // last applied sequence of JOB
	appliedAt time.Time             // when the stream stored that event
	advanced  chan struct{}         // closed and replaced when applied grows
	heard     map[string]uint32     // lost jobs with a heartbeat since the last check, and their runs
	epochs    map[string]epochsSeen // of the running jobs, at the last check
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

// waitFor waits until this advisor has applied JOB up to the sequence, or ctx ends.
func (a *Advisor) waitFor(ctx context.Context, sequence uint64) {
	for {
		a.mu.RLock()
		applied, moved := a.applied, a.advanced
		a.mu.RUnlock()
		if applied >= sequence {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// Options.MoveCPUs.
const (
	MovesOff    = "off"     // the CPUs of elastic jobs do not change
	MovesDryRun = "dry-run" // changes are published and assessed, but not carried out
	MovesOn     = "on"
)

// publish publishes an event without retrying, and logs an error.
func (a *Advisor) publish(ctx context.Context, e schemas.Event) {
	if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}

// readTimeout bounds how long a request waits until this advisor has applied recent events, or
// until the event log answers.
const readTimeout = 2 * time.Second
