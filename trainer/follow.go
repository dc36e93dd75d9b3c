package trainer

import (
	"context"
	"strings"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/schemas"
)

// watcher is what the follower knows: the past, and what predicts epoch times.
type watcher struct {
	past      *Past
	epochTime *regress.Predictor
	digest    string // of its file
	encoder   *schemas.Encoder
	watch     *Watch
	measured  map[measuredSetting]bool // that are judged; nil: all
	running   map[runKey]*running
	foundAt   time.Time        // begin of the last drift
	cut       time.Time        // begin of ADWIN's window, if it was cut
	told      uint64           // sequence of the last event whose drift was published already
	unsaid    []*schemas.Drift // drifts that are not published yet
	lastFit   time.Time        // by the monotonic clock
}

// follow counts epochs and watches for drift, and wishes for a fit.
func (t *Trainer) follow(ctx context.Context) error {
	w := &watcher{past: NewPast()}
	var err error
	if w.told, err = t.recallDrifts(ctx); err != nil {
		t.log.Warn("earlier drifts are not known", "error", err)
	}
	live, late := false, ""
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: jobEvents(), CaughtUp: func() {
		live = true
		t.wish(w, late) // what happened while nobody listened counts, too
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		standings := *t.standings.Load()
		if c := standings[schemas.TargetEpochTime].champion; c != nil && c.predictor != w.epochTime {
			w.use(c.predictor, c.digest)
			t.fresh.Store(0)
			w.lastFit = time.Now()
			late = ""
		}
		w.past.Add(r.Event, r.Sequence)
		t.say(ctx, w)
		t.try(w, standings, r)
		reason := t.reasonToFit(ctx, w, r)
		t.metrics.waiting.Set(float64(t.fresh.Load()))
		if live {
			t.wish(w, reason)
		} else if reason != "" {
			late = reason
		}
		return nil
	})
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
	if w.epochTime != nil && time.Since(w.lastFit) < t.o.CoolDown {
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

// drifting reports whether a reason to fit is a drift.
func drifting(reason string) bool { return strings.HasPrefix(reason, "drift") }

// reasonToFit counts an event and says why it calls for a fit; "" if it does not.
func (t *Trainer) reasonToFit(ctx context.Context, w *watcher, r bus.Record) string {
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
func (w *watcher) learnt(r bus.Record) bool {
	return !r.StoredAt.After(w.epochTime.Manifest().Examples.Last)
}
