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
	bus            *bus.Bus
	log            *slog.Logger
	metrics        *metrics
	o              Options
	regressors     atomic.Pointer[decide.Regressors]
	outbox         *outbox
	newestSnapshot snapshotRecord
	replayTo       atomic.Uint64 // last sequence of JOB at the start
	caughtUp       chan struct{} // closed at the end of the replay
	answering      chan struct{} // closed when requests are answered
	admitting      sync.Mutex    // held during an admission

	mu        sync.RWMutex
	cluster   *cluster.Cluster
	applied   uint64        // last applied sequence of JOB
	appliedAt time.Time     // when the stream stored that event
	advanced  chan struct{} // closed and replaced when applied grows
}

// New returns an advisor that does not run yet.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) *Advisor {
	a := &Advisor{
		bus:       b,
		log:       log,
		metrics:   newMetrics(reg),
		o:         o.withDefaults(),
		caughtUp:  make(chan struct{}),
		answering: make(chan struct{}),
		cluster:   cluster.New(),
		advanced:  make(chan struct{}),
	}
	a.outbox = newOutbox(b.Publish, a.metrics, log)
	a.regressors.Store(&decide.Regressors{})
	return a
}

// Run works until ctx ends. It first loads the newest snapshot of the state, and stores a snapshot
// at the end. These are its parts:
//
//	JOB stream ──► apply ─► re-predict ──► outbox ──► job.<id>.advice, job.<id>.risk
//	NODE stream ─► apply       ▲
//	job.*.alive ─► heartbeat   │ lock
//	clock ───────► silent? ────┤──► job.<id>.lost
//	champions ───► load, check ┘
//	job.submit, … (after the replay) ──► Decide ──► reply
//	queue ──► start next (after every event) ──► job.<id>.admitted, job.<id>.advice
//	clock ──► snapshots of the state, limits of the JOB stream
func (a *Advisor) Run(ctx context.Context) error {
	if a.restore(ctx) != nil {
		return nil // ctx has ended
	}
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		a.outbox.run(sending)
	}()
	err := a.runParts(ctx)

	a.outbox.close()
	if !a.bus.Connected() {
		abandon()
	}
	select {
	case <-sent:
	case <-time.After(drainTimeout):
		abandon()
		<-sent
	}
	a.lastSnapshot(ctx)
	return err
}

// runParts runs all parts until ctx ends or one of them fails.
func (a *Advisor) runParts(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func(context.Context) error{
		a.followJobs, a.followNodes, a.listenAlive, a.watchSilence, a.followRegressors, a.serve,
		a.keepQueue, a.reportReplay, a.keepSnapshots, a.keepLog,
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
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

// reportReplay logs the progress of the replay until it is complete.
func (a *Advisor) reportReplay(ctx context.Context) error {
	tick := time.NewTicker(replayReport)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.answering:
			<-ctx.Done() // runParts ends when a part returns
			return nil
		case <-tick.C:
			a.log.Warn("requests wait for the replay", "reason", a.Ready())
		}
	}
}

// replayReport is the interval between two reports of the replay.
const replayReport = 10 * time.Second

// Answering returns a channel that is closed when the advisor answers requests.
func (a *Advisor) Answering() <-chan struct{} { return a.answering }

func (a *Advisor) followJobs(ctx context.Context) error {
	live := false
	a.mu.RLock()
	from := a.applied + 1
	a.mu.RUnlock()
	o := bus.FollowOptions{
		Stream: schemas.StreamJob,
		From:   from,
		CaughtUp: func() {
			live = true
			a.catchUp()
			close(a.caughtUp)
		},
	}
	return a.bus.Follow(ctx, o, func(r bus.Record) error {
		a.handleJobEvent(r, live)
		return nil
	})
}

func (a *Advisor) followNodes(ctx context.Context) error {
	return a.bus.Follow(ctx, bus.FollowOptions{
		Stream:         schemas.StreamNode,
		LastPerSubject: true,
	}, func(r bus.Record) error {
		a.mu.Lock()
		a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
		a.mu.Unlock()
		return nil
	})
}

func (a *Advisor) listenAlive(ctx context.Context) error {
	alive := schemas.JobSubject("*", schemas.EventAlive)
	return a.bus.ListenPersons(ctx, []string{alive, schemas.PersonSubject("*", alive)}, a.onAlive)
}

// watchSilence records silent jobs as lost. While NATS is unreachable neither heartbeats nor events
// can arrive, so no job is lost.
func (a *Advisor) watchSilence(ctx context.Context) error {
	tick := time.NewTicker(a.o.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if a.Ready() != nil {
			continue
		}
		now := time.Now().UTC()
		a.mu.Lock()
		if !a.bus.Connected() {
			for j := range a.cluster.Running() {
				j.LastSeen = now
			}
		}
		var lost []*schemas.Ended
		for _, j := range a.cluster.Silent(now) {
			e := &schemas.Ended{
				Outcome:    schemas.EventLost,
				Setting:    j.Setting,
				EpochsDone: j.EpochsDone,
				Reason:     fmt.Sprintf("silent since %s", j.LastSeen.UTC().Format(time.RFC3339)),
			}
			e.JobStamp = schemas.JobStamp{
				Stamp: schemas.Stamp{EventID: schemas.LostID(j.ID, j.Last), At: now},
				JobID: j.ID,
				Run:   j.Run,
			}
			lost = append(lost, e)
		}
		a.mu.Unlock()
		for _, e := range lost {
			a.metrics.lost.Inc()
			a.log.Warn("job lost", "job_id", e.JobID, "reason", e.Reason)
			a.record(ctx, e)
		}
	}
}

// record publishes an event of the advisor and waits until it is applied, so that the next request
// sees it.
func (a *Advisor) record(ctx context.Context, e schemas.Event) {
	sequence, err := a.bus.Publish(ctx, e)
	if err != nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
		return
	}
	a.waitFor(ctx, sequence)
}

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

// onAlive records a heartbeat. It ignores a heartbeat that a person sent for another person's job.
func (a *Advisor) onAlive(person string, e schemas.Event) {
	alive := e.(*schemas.Alive)
	if owner, known, _ := a.owner(alive.JobID); !known || person != "" && person != owner {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.cluster.Live(alive.JobID); j != nil &&
		alive.Run == j.Run { // owner releases the lock, so the job may have been packed
		j.LastSeen = time.Now()
	}
}

// Options.MoveCPUs.
const (
	MovesOff    = "off"     // the CPUs of elastic jobs do not change
	MovesDryRun = "dry-run" // changes are published and assessed, but not carried out
	MovesOn     = "on"
)
