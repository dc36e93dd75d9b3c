package trainer

import (
	"context"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/schemas"
)

// watcher is what the follower knows: the past, and what predicts epoch times.
type watcher struct {
	past      *Past
	drift     Drift
	epochTime *regress.Predictor
	columns   []schemas.Column
	deviation float64
	fresh     int       // epochs since the last fit
	lastFit   time.Time // by the monotonic clock
}

// follow counts epochs and watches for drift, and wishes for a fit.
func (t *Trainer) follow(ctx context.Context) error {
	w := &watcher{past: NewPast()}
	if c, _, err := t.bus.Champion(ctx, schemas.TargetEpochTime); err == nil {
		if p, err := t.load(ctx, c); err == nil {
			t.current.CompareAndSwap(nil, p)
		} else {
			t.log.Warn("champion cannot be watched for drift", "target", c.Target, "error", err)
		}
	}
	live, late := false, ""
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: jobEvents(), CaughtUp: func() {
		live = true
		t.wish(w, late) // what happened while nobody listened counts, too
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if p := t.current.Load(); p != nil && p != w.epochTime {
			w.use(p)
			w.fresh, w.lastFit = 0, time.Now()
			late = ""
		}
		w.past.Add(r.Event, r.Sequence)
		reason := t.reasonToFit(w, r)
		t.metrics.waiting.Set(float64(w.fresh))
		if live {
			t.wish(w, reason)
		} else if reason != "" {
			late = reason
		}
		return nil
	})
}

// wish asks for a fit, if there is a reason and the last one is not too fresh.
func (t *Trainer) wish(w *watcher, reason string) {
	if reason == "" || w.epochTime != nil && time.Since(w.lastFit) < t.o.CoolDown {
		return
	}
	select {
	case t.wishes <- wish{targets: schemas.Targets(), reason: reason}:
		w.lastFit, w.fresh = time.Now(), 0
	default: // one is waiting already
	}
}

// reasonToFit counts an event and says why it calls for a fit; "" if it does not.
func (t *Trainer) reasonToFit(w *watcher, r bus.Record) string {
	if w.epochTime != nil && w.learnt(r) {
		return ""
	}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		w.fresh++
		if mean, drifted := w.watch(e); drifted {
			t.metrics.drifts.Inc()
			t.log.Info("epochs are not as predicted", "mean_log_residual", mean, "epochs", driftWindow)
			w.drift.Reset()
			return "the last 20 epochs were not as predicted"
		}
	case *schemas.Ended:
		if e.EpochsDone == 0 {
			w.fresh++ // a run whose epochs were not recognised is one example
		}
		if w.epochTime == nil {
			return "the first regressor" // perhaps this job was the one that was missing
		}
	}
	if w.fresh >= t.o.NewEpochs {
		return "enough new epochs"
	}
	return ""
}

// learnt reports whether the champion has learnt from the record already.
func (w *watcher) learnt(r bus.Record) bool {
	return !r.StoredAt.After(w.epochTime.Manifest().Examples.Last)
}

// use takes a predictor whose features this version knows.
func (w *watcher) use(p *regress.Predictor) {
	var names []string
	for _, f := range p.Features() {
		names = append(names, f.Name)
	}
	columns, err := schemas.ParseColumns(names)
	if err != nil {
		return
	}
	w.epochTime, w.columns, w.deviation = p, columns, deviation(p.Manifest().Calibration.Residuals)
	w.drift.Reset()
}

// watch compares an epoch with its prediction.
func (w *watcher) watch(e *schemas.Epoch) (mean float64, drifted bool) {
	if w.epochTime == nil {
		return 0, false
	}
	r := w.past.runs[runKey{e.JobID, e.Run}]
	if r == nil {
		return 0, false
	}
	x, ok := w.past.example(r, w.past.beside(r), e, schemas.TargetEpochTime)
	if !ok {
		return 0, false
	}
	for i, c := range w.columns {
		if c == schemas.ColumnModel {
			code, known := w.epochTime.Features()[i].Level(x.Model)
			if !known {
				return 0, false
			}
			x.Features.ModelCode = code
		}
	}
	row := make([]float64, len(w.columns))
	x.Features.Fill(row, w.columns)
	p, err := w.epochTime.Predict(row)
	if err != nil || p.Extrapolated {
		return 0, false
	}
	return w.drift.Add(x.Value, p.Value, w.deviation)
}
