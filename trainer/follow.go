package trainer

import (
	"context"
	"strings"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// watcher owns the past and the predictor of epoch times. It belongs to the goroutine of follow.
type watcher struct {
	past            *Past
	position        uint64           // sequence up to which the log was read
	live            bool             // everything stored at the start was read
	pendingReason   string           // last reason for a fit while the log is replayed
	exampleRequests []exampleRequest // wait until the log is read far enough

	epochTime        *regress.Predictor
	digest           string // of its file
	encoder          *schemas.Encoder
	watch            *Watch
	replicated       map[runSetting]bool // settings that are compared; nil: all
	running          *lru[runKey, *runResiduals]
	driftedAt        time.Time               // begin of the last drift
	windowBegin      time.Time               // begin of ADWIN's window, if it was cut
	publishedThrough uint64                  // sequence of the last event whose drift is published
	unpublished      []*schemas.Drift        // at most maxUnpublished
	lastFit          time.Time               // monotonic clock
	state            *evidence.State         // of the champion and later runs; nil for other families
	foreign          []schemas.ForeignColumn // columns of the champion
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
	w := &watcher{past: NewLimitedPast(t.o.Limits)}
	var err error
	if w.publishedThrough, err = t.recallDrifts(ctx); err != nil {
		t.log.Warn("earlier drifts not read", "error", err)
	}
	in, ended := make(chan logUpdate, updateBuffer), make(chan error, 1)
	go func() { ended <- t.readJobs(ctx, in) }()
	for {
		select {
		case p := <-in:
			t.handleUpdate(ctx, w, &p)
		case v := <-t.exampleRequests:
			w.exampleRequests = append(w.exampleRequests, v)
		case err := <-ended:
			return err
		}
		w.answer(t.o.horizon(time.Now()))
	}
}

// handleUpdate applies an update of the reader.
func (t *Trainer) handleUpdate(ctx context.Context, w *watcher, p *logUpdate) {
	if p.record.Event != nil {
		t.handleEvent(ctx, w, p.record)
	}
	w.position = max(w.position, p.position)
	if p.live && !w.live {
		w.live = true
		runs, epochs := w.past.Len()
		t.log.Info("log replayed", "sequence", w.position, "runs", runs, "epochs", epochs)
		t.compareMissedRuns(w)
		t.requestFit(w, w.pendingReason) // events from before the start count as well
	}
}

// handleEvent applies the next event and requests a fit if it calls for one.
func (t *Trainer) handleEvent(ctx context.Context, w *watcher, r bus.Record) {
	standings := *t.active.Load()
	if c := standings[schemas.TargetEpochTime].champion; c != nil && c.predictor != w.epochTime {
		w.setChampion(c.predictor, c.digest)
		w.state, w.foreign = c.evidence(), foreignOf(c.predictor.Manifest())
		t.compareMissedRuns(w)
		t.newEpochs.Store(0)
		w.lastFit, w.pendingReason = time.Now(), ""
	}
	n := &appliedEvent{Record: r}
	n.run, n.epoch = w.past.add(r.Event, r.Sequence)
	t.publishDrifts(ctx, w)
	if n.run == nil {
		return // a duplicate, or an event that examples do not need
	}
	t.runTrials(w, standings, n)
	reason := t.reasonToFit(ctx, w, n)
	t.metrics.newEpochs.Set(float64(t.newEpochs.Load()))
	if w.live {
		t.requestFit(w, reason)
	} else if reason != "" {
		w.pendingReason = reason
	}
}

// requestFit requests a fit if there is a reason. During the cool-down the request is stored, and
// work carries it out afterwards.
func (t *Trainer) requestFit(w *watcher, reason string) {
	if reason == "" {
		return
	}
	next := &fitRequest{targets: schemas.Targets(), reason: reason}
	if before := t.pendingFit.Load(); before != nil && drifting(before.reason) {
		next = before // drift is the most specific reason
	}
	if w.epochTime != nil && time.Since(w.lastFit) < t.coolDown() {
		t.pendingFit.Store(next)
		return
	}
	select {
	case t.fitRequests <- *next:
		w.lastFit = time.Now()
		t.pendingFit.Store(nil)
		t.newEpochs.Store(0)
	default: // a request is waiting
		t.pendingFit.Store(next)
	}
}

// fitShare is the maximum share of time that automatic fits may take.
const fitShare = 0.05

// coolDown returns the minimum time between two automatic fits. With MethodEvidence each run calls
// for one, so long fits must be rarer.
func (t *Trainer) coolDown() time.Duration {
	if t.o.Method != MethodEvidence {
		return t.o.CoolDown
	}
	return max(t.o.CoolDown, time.Duration(float64(t.fitDuration.Load())/fitShare))
}

// drifting reports whether a reason to fit is a drift.
func drifting(reason string) bool { return strings.HasPrefix(reason, "drift") }

// reasonToFit counts an event and returns the reason why it calls for a fit; "" if it does not.
func (t *Trainer) reasonToFit(ctx context.Context, w *watcher, r *appliedEvent) string {
	switch e := r.Event.(type) {
	case *schemas.Started:
		t.nodeChanges.job(&e.Setting, e.NodeCores, e.At)
	case *schemas.Epoch:
		t.nodeChanges.job(&e.Setting, e.NodeCores, e.At)
	}
	if w.epochTime != nil && w.isLearned(r) {
		return ""
	}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		t.newEpochs.Add(1)
	case *schemas.Ended:
		if e.EpochsDone == 0 {
			t.newEpochs.Add(1) // a run without recognized epochs is one example
		}
		if w.epochTime == nil {
			return firstReason // this job may complete the minimum of examples
		}
		if w.epochTime.Manifest().Family == regress.FamilyHierarchy {
			if w.live {
				t.compareEndedRuns(w, r.run)
			}
			return endedReason
		}
	}
	if w.epochTime != nil {
		f, found := w.judgeEvent(r)
		if w.watch != nil {
			t.checkWindow(w)
		}
		if found {
			return t.handleFinding(ctx, w, &f, r)
		}
	}
	if t.newEpochs.Load() >= int64(t.o.NewEpochs) {
		return enoughReason
	}
	return ""
}

// isLearned reports whether the champion was fitted after the event was stored.
func (w *watcher) isLearned(r *appliedEvent) bool {
	return !r.StoredAt.After(w.epochTime.Manifest().Examples.Last)
}

// endedReason is the reason of a fit after the end of a run.
const endedReason = "a run has ended"
