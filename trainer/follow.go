package trainer

import (
	"context"
	"strings"
	"sync"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// follower owns the past and the predictor of epoch times. Only the goroutine of follow uses it.
type follower struct {
	past            *Past
	position        uint64           // sequence up to which the log was read
	live            bool             // all events stored at the start have been read
	pendingReason   string           // last reason for a fit while the log is replayed
	exampleRequests []exampleRequest // wait until the log is read far enough

	epochTime        *regress.Predictor
	digest           string // of its file
	encoder          *schemas.Encoder
	watch            *Watch
	replicated       map[runSetting]bool // configurations that are compared; nil: all
	running          *lru[runKey, *runResiduals]
	driftedAt        time.Time                 // begin of the last drift
	windowBegin      time.Time                 // begin of ADWIN's window, if it was cut
	publishedThrough uint64                    // sequence of the last event whose drift is published
	unpublished      []*schemas.Drift          // at most maxUnpublished
	lastFit          time.Time                 // monotonic clock
	state            *evidence.ServedHierarchy // of the champion and later runs; nil for other families
	foreign          []schemas.ForeignColumn   // columns of the champion
}

// appliedEvent is an event that changed the past, with the run and epoch that it changed.
type appliedEvent struct {
	bus.Record
	run   *run
	epoch *keptEpoch // nil unless the event is an epoch
}

// updateBuffer is the number of events that are read ahead.
const updateBuffer = 256

// follow owns the past. It applies the events of jobs, detects drift, requests fits, and replies to
// example requests.
func (t *Trainer) follow(ctx context.Context) error {
	fw := &follower{past: NewLimitedPast(t.o.Limits)}
	var err error
	if fw.publishedThrough, err = t.recallDrifts(ctx); err != nil {
		t.log.Warn("earlier drifts not read", "error", err)
	}
	in, ended := make(chan logUpdate, updateBuffer), make(chan error, 1)
	go func() { ended <- t.readJobs(ctx, in) }()
	for {
		select {
		case p := <-in:
			t.handleUpdate(ctx, fw, &p)
		case v := <-t.exampleRequests:
			fw.exampleRequests = append(fw.exampleRequests, v)
		case err := <-ended:
			return err
		}
		fw.answer(t.o.horizon(time.Now()))
	}
}

// handleUpdate applies an update of the reader.
func (t *Trainer) handleUpdate(ctx context.Context, fw *follower, p *logUpdate) {
	if p.record.Event != nil {
		t.handleEvent(ctx, fw, p.record)
	}
	fw.position = max(fw.position, p.position)
	if p.live && !fw.live {
		fw.live = true
		runs, epochs := fw.past.Len()
		t.log.Info("log replayed", "sequence", fw.position, "runs", runs, "epochs", epochs)
		t.compareMissedRuns(fw)
		t.requestFit(fw, fw.pendingReason) // events from before the start count as well
	}
}

// handleEvent applies the next event and requests a fit if the event is a reason for one.
func (t *Trainer) handleEvent(ctx context.Context, fw *follower, r bus.Record) {
	standings := *t.active.Load()
	if c := standings[schemas.TargetEpochTime].champion; c != nil && c.predictor != fw.epochTime {
		fw.setChampion(c.predictor, c.digest)
		fw.state, fw.foreign = c.evidence(), foreignOf(c.predictor.Manifest())
		t.compareMissedRuns(fw)
		t.newEpochs.Store(0)
		fw.lastFit, fw.pendingReason = time.Now(), ""
	}
	n := &appliedEvent{Record: r}
	n.run, n.epoch = fw.past.add(r.Event, r.Sequence)
	t.publishDrifts(ctx, fw)
	if n.run == nil {
		return // a duplicate, or an event that no example depends on
	}
	t.runTrials(fw, standings, n)
	reason := t.reasonToFit(ctx, fw, n)
	t.metrics.newEpochs.Set(float64(t.newEpochs.Load()))
	switch {
	case fw.live && isImported(&r) && reason != "":
		t.imports.add(time.Now())
		t.storeFit(reason)
	case fw.live:
		t.requestFit(fw, reason)
	case reason != "":
		fw.pendingReason = reason
	}
}

// importAge is the age at which the log receives the event of an imported run. A runner that was
// disconnected for as long is no different.
const importAge = time.Hour

func isImported(r *bus.Record) bool {
	return r.StoredAt.Sub(r.Event.Stamped().At) > importAge
}

// maxImport bounds how long an import defers a fit.
const maxImport = 10 * time.Minute

// importClock reports whether runs are being imported. No fit begins during an import: otherwise a
// regressor would be promoted that has seen only the first runs.
type importClock struct {
	mu          sync.Mutex
	began, last time.Time
}

// add records an imported event.
func (c *importClock) add(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) > maxImport {
		c.began = now
	}
	c.last = now
}

// isRunning reports whether an event was imported within the last pause.
func (c *importClock) isRunning(now time.Time, pause time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.last) < pause && now.Sub(c.began) < maxImport
}

// storeFit stores a request, which work carries out after the cool-down.
func (t *Trainer) storeFit(reason string) { t.pendingFit.Store(t.nextFit(reason)) }

// nextFit returns the request for a reason, or a stored request because of drift, which is the most
// specific reason.
func (t *Trainer) nextFit(reason string) *fitRequest {
	if before := t.pendingFit.Load(); before != nil && isDrift(before.reason) {
		return before
	}
	return &fitRequest{targets: schemas.Targets(), reason: reason}
}

// requestFit requests a fit if there is a reason. During the cool-down the request is stored, and
// work carries it out afterwards.
func (t *Trainer) requestFit(fw *follower, reason string) {
	if reason == "" {
		return
	}
	next := t.nextFit(reason)
	if fw.epochTime != nil && time.Since(fw.lastFit) < t.coolDown() {
		t.pendingFit.Store(next)
		return
	}
	select {
	case t.fitRequests <- *next:
		fw.lastFit = time.Now()
		t.pendingFit.Store(nil)
		t.newEpochs.Store(0)
	default: // a request is waiting
		t.pendingFit.Store(next)
	}
}

// fitShare is the maximum share of time that automatic fits may take.
const fitShare = 0.05

// coolDown returns the minimum time between two automatic fits. With MethodEvidence each run
// requests a fit, so long fits must be less frequent.
func (t *Trainer) coolDown() time.Duration {
	if t.o.Method != MethodEvidence {
		return t.o.CoolDown
	}
	return max(t.o.CoolDown, time.Duration(float64(t.fitDuration.Load())/fitShare))
}

// isDrift reports whether a reason to fit is a drift.
func isDrift(reason string) bool { return strings.HasPrefix(reason, "drift") }

// reasonToFit counts an event and returns the reason for a fit; "" if there is none.
func (t *Trainer) reasonToFit(ctx context.Context, fw *follower, r *appliedEvent) string {
	switch e := r.Event.(type) {
	case *schemas.Started:
		t.nodeChanges.job(&e.Setting, e.NodeCores, e.At)
	case *schemas.Epoch:
		t.nodeChanges.job(&e.Setting, e.NodeCores, e.At)
	}
	if fw.epochTime != nil && fw.isLearned(r) {
		return ""
	}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		t.newEpochs.Add(1)
	case *schemas.Ended:
		if e.EpochsDone == 0 {
			t.newEpochs.Add(1) // a run without recognized epochs is one example
		}
		if fw.epochTime == nil {
			return firstReason // the run may complete the minimum number of examples
		}
		if fw.epochTime.Manifest().Family == regress.FamilyHierarchy {
			if fw.live {
				t.compareEndedRuns(fw, r.run)
			}
			return endedReason
		}
	}
	if fw.epochTime != nil {
		f, found := fw.judgeEvent(r)
		if fw.watch != nil {
			t.checkWindow(fw)
		}
		if found {
			return t.handleFinding(ctx, fw, &f, r)
		}
	}
	if t.newEpochs.Load() >= int64(t.o.NewEpochs) {
		return enoughReason
	}
	return ""
}

// isLearned reports whether the champion was fitted after the event was stored.
func (fw *follower) isLearned(r *appliedEvent) bool {
	return !r.StoredAt.After(fw.epochTime.Manifest().Examples.Last)
}

// endedReason is the reason of a fit after the end of a run.
const endedReason = "a run has ended"
