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

// watcher owns the past and what predicts epoch times. One goroutine works with it.
type watcher struct {
	past     *Past
	position uint64 // of the log: up to there it was read
	live     bool   // all that was stored at the start was read
	late     string // reason for a fit that came before
	views    []view // that wait for the log to be read

	epochTime *regress.Predictor
	digest    string // of its file
	encoder   *schemas.Encoder
	watch     *Watch
	measured  map[measuredSetting]bool // that are judged, of calibrationRuns at most; nil: all
	running   *lru[runKey, *running]
	foundAt   time.Time               // begin of the last drift
	cut       time.Time               // begin of ADWIN's window, if it was cut
	told      uint64                  // sequence of the last event whose drift was published already
	unsaid    []*schemas.Drift        // drifts that are not published yet, at most mostUnsaid
	lastFit   time.Time               // by the monotonic clock
	state     *evidence.State         // of the champion and what ended since; nil if it is no such regressor
	foreign   []schemas.ForeignColumn // of the champion
}

// news is an event that changed the past, and what the past keeps of it.
type news struct {
	bus.Record
	run   *run
	epoch *epoch // of an epoch event
}

// passages is the number of events that are read ahead.
const passages = 256

// follow owns the past: it folds the events of jobs, watches for drift, wishes for fits, and
// answers what fits ask of the past.
func (t *Trainer) follow(ctx context.Context) error {
	w := &watcher{past: NewLimitedPast(t.o.Limits)}
	var err error
	if w.told, err = t.recallDrifts(ctx); err != nil {
		t.log.Warn("earlier drifts are not known", "error", err)
	}
	in, ended := make(chan passage, passages), make(chan error, 1)
	go func() { ended <- t.readJobs(ctx, in) }()
	for {
		select {
		case p := <-in:
			t.pass(ctx, w, &p)
		case v := <-t.views:
			w.views = append(w.views, v)
		case err := <-ended:
			return err
		}
		w.answer(t.o.horizon(time.Now()))
	}
}

// pass takes what the reader hands over.
func (t *Trainer) pass(ctx context.Context, w *watcher, p *passage) {
	if p.record.Event != nil {
		t.take(ctx, w, p.record)
	}
	w.position = max(w.position, p.position)
	if p.live && !w.live {
		w.live = true
		runs, epochs := w.past.Len()
		t.log.Info("log replayed", "sequence", w.position, "runs", runs, "epochs", epochs)
		t.catchUp(w)
		t.wish(w, w.late) // what happened while no trainer ran counts as well
	}
}

// take takes the next event.
func (t *Trainer) take(ctx context.Context, w *watcher, r bus.Record) {
	standings := *t.standings.Load()
	if c := standings[schemas.TargetEpochTime].champion; c != nil && c.predictor != w.epochTime {
		w.use(c.predictor, c.digest)
		w.state, w.foreign = c.evidence(), foreignOf(c.predictor.Manifest())
		t.catchUp(w)
		t.fresh.Store(0)
		w.lastFit, w.late = time.Now(), ""
	}
	n := &news{Record: r}
	n.run, n.epoch = w.past.add(r.Event, r.Sequence)
	t.say(ctx, w)
	if n.run == nil {
		return // a copy, or of no use
	}
	t.try(w, standings, n)
	reason := t.reasonToFit(ctx, w, n)
	t.metrics.waiting.Set(float64(t.fresh.Load()))
	if w.live {
		t.wish(w, reason)
	} else if reason != "" {
		w.late = reason
	}
}

// wish asks for a fit, if there is a reason; when the cool-down is over, if the
// last one is too fresh.
func (t *Trainer) wish(w *watcher, reason string) {
	if reason == "" {
		return
	}
	next := &wish{targets: schemas.Targets(), reason: reason}
	if before := t.due.Load(); before != nil && drifting(before.reason) {
		next = before // says more than any other reason
	}
	if w.epochTime != nil && time.Since(w.lastFit) < t.coolDown() {
		t.due.Store(next)
		return
	}
	select {
	case t.wishes <- *next:
		w.lastFit = time.Now()
		t.due.Store(nil)
		t.fresh.Store(0)
	default: // one is waiting already
		t.due.Store(next)
	}
}

// fitShare is the part of the time that fits may take which nobody asked for.
const fitShare = 0.05

// coolDown is the least time between two fits that nobody asked for. By evidence each run calls
// for one, so that long fits must be rarer.
func (t *Trainer) coolDown() time.Duration {
	if t.o.Method != MethodEvidence {
		return t.o.CoolDown
	}
	return max(t.o.CoolDown, time.Duration(float64(t.fitTook.Load())/fitShare))
}

// drifting reports whether a reason to fit is a drift.
func drifting(reason string) bool { return strings.HasPrefix(reason, "drift") }

// reasonToFit counts an event and says why it calls for a fit; "" if it does not.
func (t *Trainer) reasonToFit(ctx context.Context, w *watcher, r *news) string {
	switch e := r.Event.(type) {
	case *schemas.Started:
		t.changes.job(&e.Setting, e.NodeCores, e.At)
	case *schemas.Epoch:
		t.changes.job(&e.Setting, e.NodeCores, e.At)
	}
	if w.epochTime != nil && w.learnt(r) {
		return ""
	}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		t.fresh.Add(1)
	case *schemas.Ended:
		if e.EpochsDone == 0 {
			t.fresh.Add(1) // a run whose epochs were not recognised is one example
		}
		if w.epochTime == nil {
			return firstReason // perhaps this job was the one that was missing
		}
		if w.epochTime.Manifest().Family == regress.FamilyHierarchy {
			if w.live {
				t.noteEnd(w, r.run)
			}
			return endedReason
		}
	}
	if w.epochTime != nil {
		f, found := w.judge(r)
		if w.watch != nil {
			t.cutByAdwin(w)
		}
		if found {
			return t.found(ctx, w, &f, r)
		}
	}
	if t.fresh.Load() >= int64(t.o.NewEpochs) {
		return enoughReason
	}
	return ""
}

// learnt reports whether the champion has learnt from the record already.
func (w *watcher) learnt(r *news) bool {
	return !r.StoredAt.After(w.epochTime.Manifest().Examples.Last)
}

// endedReason is to fit because a run has ended, each of which is evidence.
const endedReason = "a run has ended"
