package trainer

import (
	"context"
	"math"
	"slices"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/schemas"
)

// epochsPerOutcome is how many epochs of a run that still runs are judged
// together; a run that ends is judged by what is left. Epochs of one run err
// alike, so that they are one outcome.
const epochsPerOutcome = 20

// longAgo is how long after it happened an event is no news: a past run that is
// imported, or a spool that was found again.
const longAgo = time.Hour

// mostUnsaid is the number of drifts that wait for a bus that is away: the last ones.
const mostUnsaid = 64

// running is what a run has shown so far.
type running struct {
	sum   float64 // of log(measured / predicted)
	n     int
	held  int       // epochs within the bound
	bound int       // epochs that have one
	begin time.Time // of the first epoch in it
}

// add takes an epoch; within says whether it was within the bound, nil that there is none.
func (s *running) add(residual float64, within *bool) {
	s.sum, s.n = s.sum+residual, s.n+1
	if within != nil {
		s.bound++
		if *within {
			s.held++
		}
	}
}

// judge compares an event with its prediction, and returns what drifted by it.
func (w *watcher) judge(n *news) (f Finding, found bool) {
	at := n.Event.Stamped().At
	if !at.After(w.epochTime.Manifest().Examples.Last) {
		return f, false // the champion has learnt from it
	}
	if n.StoredAt.Sub(at) > longAgo {
		return f, false // imported runs teach, but tell nothing about the cluster as it is
	}
	if w.watch == nil {
		w.calibrate() // not before: the examples are folded only now
	}
	switch n.Event.(type) {
	case *schemas.Epoch:
		return w.judgeEpoch(n.run, n.epoch)
	case *schemas.Ended:
		return w.judgeEnd(n.run)
	}
	return f, false
}

// judgeEpoch compares an epoch with its prediction.
func (w *watcher) judgeEpoch(r *run, e *epoch) (f Finding, found bool) {
	x, ok := w.past.example(r, e, false, schemas.TargetEpochTime)
	if !ok {
		return f, false
	}
	residual, within, ok := w.residual(&x)
	if !ok {
		return f, false
	}
	s, _ := w.running.get(r.key)
	if s == nil {
		s = &running{begin: e.begin()}
		w.running.put(r.key, s)
	}
	s.add(residual, within)
	if s.n < epochsPerOutcome {
		return f, false
	}
	return w.outcome(r)
}

// judgeEnd compares what is left of a run that has ended with its prediction.
func (w *watcher) judgeEnd(r *run) (f Finding, found bool) {
	if r.told > 0 {
		return w.outcome(r)
	}
	x, ok := w.past.wholeJob(r, schemas.TargetEpochTime)
	if !ok {
		return f, false
	}
	residual, within, ok := w.residual(&x)
	if !ok {
		return f, false
	}
	s := &running{begin: r.span.From}
	s.add(residual, within)
	w.running.put(r.key, s)
	return w.outcome(r)
}

// outcome hands what a run has shown to the watch.
func (w *watcher) outcome(r *run) (f Finding, found bool) {
	s, _ := w.running.get(r.key)
	if s == nil {
		return f, false
	}
	w.running.remove(r.key)
	if w.measured != nil && !w.measured[settingOf(r)] {
		return f, false
	}
	return w.watch.Add(Outcome{
		At:       s.begin,
		Model:    r.level(),
		Nodes:    r.span.Nodes,
		Residual: s.sum / float64(s.n),
		Held:     float64(s.held) / float64(max(1, s.bound)),
		Bounded:  s.bound > 0,
	})
}

// leastReplications are the runs beyond one of each setting that tell how alike runs of a setting are.
const leastReplications = 5

// calibrationRuns is the number of runs, the last ones that the champion learnt from, that
// calibrate a watch. Their standard deviation is known to 2 % (1/sqrt(2n) for normal residuals).
const calibrationRuns = 2000

// measuredSetting is what is chosen for a run; its load is met.
type measuredSetting struct {
	model       string // its level
	batch, cpus uint32
}

// settingOf returns the setting of a run at its last epoch, or at its end.
func settingOf(r *run) measuredSetting {
	m := measuredSetting{r.level(), r.batch, r.span.CPUs}
	if r.whole != nil {
		m.batch, m.cpus = r.whole.batch, r.whole.cpus
	}
	return m
}

// calibrate begins a watch for the champion. The regressor's own residuals are those of settings
// that were left out, and measure its error for settings that it never met, which is no drift.
// So where settings were run several times, their runs around the champion's prediction give the
// deviation (one degree of freedom goes to each setting), and only runs of such settings are
// judged. Elsewhere it is the regressor's.
func (w *watcher) calibrate() {
	d := deviation(w.epochTime.Manifest().Calibration.Residuals)
	w.measured = nil
	settings := map[measuredSetting]bool{}
	runs, squares := 0, 0.0
	for _, r := range slices.Backward(w.past.order) {
		if runs == calibrationRuns {
			break
		}
		mean, ok := w.meanResidual(r)
		if !ok {
			continue
		}
		runs, squares = runs+1, squares+mean*mean
		settings[settingOf(r)] = true
	}
	if free := runs - len(settings); free >= leastReplications {
		if replicated := math.Sqrt(squares / float64(free)); replicated < d {
			d, w.measured = replicated, settings
		}
	}
	w.watch = NewWatch(d)
}

// meanResidual returns the mean residual of the last epochs of a run, as many as are judged
// together, that the champion has learnt from; ok is false if there are none.
func (w *watcher) meanResidual(r *run) (mean float64, ok bool) {
	last := w.epochTime.Manifest().Examples.Last
	if r.dropped || len(r.epochs) == 0 || r.epochs[0].end().After(last) {
		return 0, false
	}
	var sum, n float64
	for i := len(r.epochs) - 1; i >= 0 && n < epochsPerOutcome; i-- {
		e := &r.epochs[i]
		if e.end().After(last) {
			continue
		}
		x, usable := w.past.example(r, e, i < r.frozen, schemas.TargetEpochTime)
		if !usable {
			continue
		}
		if residual, _, known := w.residual(&x); known {
			sum, n = sum+residual, n+1
		}
	}
	return sum / n, n > 0
}

// residual is log(measured / predicted) of an example, and whether that is within
// the bound at the usual confidence (nil: there is none); ok is false where the
// champion cannot predict it. A node that is unlike all that the champion learnt of
// is judged as the one that it is most like: if that errs, it is time to fit.
func (w *watcher) residual(x *Example) (residual float64, within *bool, ok bool) {
	code, known := w.encoder.Model(x.level())
	if !known {
		return 0, nil, false
	}
	x.Features.ModelCode, x.Features.Node = code, w.encoder.Nearest(x.Hardware)
	row := make([]float64, len(w.encoder.Columns()))
	w.encoder.Fill(row, &x.Features)
	p, err := w.epochTime.Predict(row)
	if err != nil || p.Extrapolated || !(p.Value > 0 && x.Value > 0) {
		return 0, nil, false
	}
	if bound, bounded := w.epochTime.UpperBound(p, schemas.DefaultConfidence); bounded {
		held := x.Value <= bound
		within = &held
	}
	return math.Log(x.Value / p.Value), within, true
}

// deviation returns the standard deviation of numbers; 0 for fewer than two.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	n, mean, sum := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / (n - 1))
}

// use takes a predictor whose features this version knows.
func (w *watcher) use(p *regress.Predictor, digest string) {
	encoder, err := readEncoder(p.Manifest())
	if err != nil || p.Manifest().Transform != regress.Log {
		return
	}
	w.epochTime, w.digest, w.encoder = p, digest, encoder
	w.watch, w.cut = nil, time.Time{}
	w.running = newLRU[runKey, *running](mostShadows)
}

// readEncoder returns what makes rows for a regressor.
func readEncoder(m *regress.Manifest) (*schemas.Encoder, error) {
	inputs := make([]schemas.EncoderInput, len(m.Features))
	for i, f := range m.Features {
		inputs[i] = schemas.EncoderInput{
			Name: f.Name, Levels: f.Levels, Min: f.Min, Max: f.Max, Typical: f.Typical,
		}
	}
	return schemas.ReadEncoder(inputs)
}

// found publishes what drifted, and remembers from when on examples are true.
func (t *Trainer) found(ctx context.Context, w *watcher, f *Finding, r *news) (reason string) {
	w.foundAt = f.Since
	if r.Sequence <= w.told {
		return "" // it was found before this process was started
	}
	t.stale(drifted{f.Cause, f.Since, f.Ratio / f.BeforeRatio})
	t.mu.Lock()
	delete(t.trials, schemas.TargetEpochTime) // it begins again without what is no longer true
	t.mu.Unlock()
	e := f.drift(schemas.TargetEpochTime, w.digest, r.Sequence, r.StoredAt,
		t.changes.between(f.LooseSince, r.StoredAt))
	w.unsaid = append(w.unsaid[max(0, len(w.unsaid)+1-mostUnsaid):], e)
	t.say(ctx, w)
	t.metrics.drifts.Inc()
	t.log.Info("drift", "target", e.Target, "scope", e.Scope, "node", e.Node, "model", e.Model,
		"dataset", e.Dataset, "ratio", e.Ratio, "since", e.SinceAt, "jobs", e.Jobs)
	return "drift: " + e.Message
}

// say publishes what was not published yet; what cannot be now is tried again
// with the next event.
func (t *Trainer) say(ctx context.Context, w *watcher) {
	for len(w.unsaid) > 0 {
		if _, err := t.bus.Publish(ctx, w.unsaid[0]); err != nil {
			if ctx.Err() == nil {
				t.log.Warn("drift not published yet", "target", w.unsaid[0].Target, "error", err)
			}
			return
		}
		w.unsaid = w.unsaid[1:]
	}
}

// cutByAdwin notes that part of the past is no longer true, where nothing that
// was found says why: a change too slow or too small for Page-Hinkley.
func (t *Trainer) cutByAdwin(w *watcher) {
	_, since, cut := w.watch.Window()
	if cut && since.After(w.cut) {
		if w.cut = since; w.foundAt.IsZero() || since.After(w.foundAt) {
			t.stale(drifted{Scope{Kind: ScopeAll}, since, 1})
		}
	}
}

// stale remembers that examples from before a drift are not true any more.
func (t *Trainer) stale(d drifted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drifts = append(t.drifts[max(0, len(t.drifts)+1-keptDrifts):], d)
}

// recallDrifts reads what drifted before this process was started, and returns
// the sequence of the last job's event that showed it.
func (t *Trainer) recallDrifts(ctx context.Context) (last uint64, err error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	o := bus.FollowOptions{
		Stream:   schemas.StreamRegressor,
		Subjects: []string{schemas.RegressorSubject(schemas.TargetEpochTime, schemas.EventDrift)},
		CaughtUp: stop,
	}
	err = t.bus.Follow(reading, o, func(r bus.Record) error {
		e := r.Event.(*schemas.Drift)
		if e.State != "" {
			return nil // a correction of another method
		}
		t.stale(drifted{causeOf(e), e.SinceAt, e.Ratio / e.BeforeRatio})
		last = max(last, e.CauseSequence)
		return nil
	})
	return last, err
}

// followNodes notes which nodes join, leave and change.
func (t *Trainer) followNodes(ctx context.Context) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: func() {
		live = true
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Sample); ok {
			t.changes.sample(e, live)
		}
		return nil
	})
}
