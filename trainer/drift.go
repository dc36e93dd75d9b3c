package trainer

import (
	"context"
	"math"
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
func (w *watcher) judge(r bus.Record) (f Finding, found bool) {
	at := time.Time{}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		at = e.At
	case *schemas.Ended:
		at = e.At
	}
	if !at.After(w.epochTime.Manifest().Examples.Last) {
		return f, false // the champion has learnt from it
	}
	if r.StoredAt.Sub(at) > longAgo {
		return f, false // what was imported teaches, but says nothing of the cluster as it is
	}
	if w.watch == nil {
		w.calibrate() // not before: the examples are folded only now
	}
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		k := runKey{e.JobID, e.Run}
		past := w.past.runs[k]
		if past == nil {
			return f, false
		}
		x, ok := w.past.example(past, w.past.beside(past), e, schemas.TargetEpochTime)
		if !ok {
			return f, false
		}
		residual, within, ok := w.residual(&x)
		if !ok {
			return f, false
		}
		s := w.running[k]
		if s == nil {
			s = &running{begin: begin(e)}
			w.running[k] = s
		}
		s.add(residual, within)
		if s.n >= epochsPerOutcome {
			return w.outcome(k, &e.Setting)
		}
	case *schemas.Ended:
		k := runKey{e.JobID, e.Run}
		past := w.past.runs[k]
		if past == nil {
			return f, false
		}
		if len(past.epochs) > 0 {
			return w.outcome(k, &past.epochs[len(past.epochs)-1].Setting)
		}
		for _, x := range w.past.wholeJob(past, w.past.beside(past), schemas.TargetEpochTime) {
			if residual, within, ok := w.residual(&x); ok {
				s := &running{begin: past.span.From}
				s.add(residual, within)
				w.running[k] = s
				return w.outcome(k, &e.Setting)
			}
		}
	}
	return f, false
}

// outcome hands what a run has shown to the watch.
func (w *watcher) outcome(k runKey, set *schemas.Setting) (f Finding, found bool) {
	s := w.running[k]
	if s == nil {
		return f, false
	}
	delete(w.running, k)
	if w.measured != nil && !w.measured[settingOf(set)] {
		return f, false
	}
	return w.watch.Add(Outcome{At: s.begin, Model: set.Model, Nodes: set.Nodes, Residual: s.sum / float64(s.n), Held: float64(s.held) / float64(max(1, s.bound)), Bounded: s.bound > 0})
}

// leastReplications are the runs beyond one of each setting that tell how alike runs of a setting are.
const leastReplications = 5

// measuredSetting is what is chosen for a run; its load is met.
type measuredSetting struct {
	model       string
	batch, cpus uint32
}

func settingOf(s *schemas.Setting) measuredSetting {
	return measuredSetting{s.Model, s.BatchSize, s.CPUs}
}

// calibrate begins a watch for the champion. The regressor's own residuals are
// those of settings that were left out, and say how wrong it is about settings
// that it never met, which is no drift. So where settings were run several times,
// their runs around the champion's prediction give the deviation (one degree of
// freedom goes to each setting), and only runs of such settings are judged.
// Elsewhere it is the regressor's.
func (w *watcher) calibrate() {
	d := deviation(w.epochTime.Manifest().Calibration.Residuals)
	w.measured = nil
	last, settings := w.epochTime.Manifest().Examples.Last, map[measuredSetting]bool{}
	runs, squares := 0, 0.0
	for _, r := range w.past.order {
		if len(r.epochs) == 0 || r.epochs[0].At.After(last) {
			continue
		}
		spans := w.past.beside(r)
		var sum, n float64
		for _, e := range r.epochs {
			if x, ok := w.past.example(r, spans, e, schemas.TargetEpochTime); ok && !e.At.After(last) {
				if residual, _, ok := w.residual(&x); ok {
					sum, n = sum+residual, n+1
				}
			}
		}
		if n > 0 {
			runs, squares = runs+1, squares+sum/n*sum/n
			settings[settingOf(&r.epochs[0].Setting)] = true
		}
	}
	if free := runs - len(settings); free >= leastReplications {
		if replicated := math.Sqrt(squares / float64(free)); replicated < d {
			d, w.measured = replicated, settings
		}
	}
	w.watch = NewWatch(d)
}

// residual is log(measured / predicted) of an example, and whether that is within
// the bound at the usual confidence (nil: there is none); ok is false where the
// champion cannot predict it. A node that is unlike all that the champion learnt of
// is judged as the one that it is most like: if that errs, it is time to fit.
func (w *watcher) residual(x *Example) (residual float64, within *bool, ok bool) {
	code, known := w.encoder.Model(x.Model)
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
	w.watch, w.running, w.cut = nil, map[runKey]*running{}, time.Time{}
}

// readEncoder returns what makes rows for a regressor.
func readEncoder(m *regress.Manifest) (*schemas.Encoder, error) {
	inputs := make([]schemas.Input, len(m.Features))
	for i, f := range m.Features {
		inputs[i] = schemas.Input{Name: f.Name, Levels: f.Levels, Min: f.Min, Max: f.Max}
	}
	return schemas.ReadEncoder(inputs)
}

// found publishes what drifted, and remembers from when on examples are true.
func (t *Trainer) found(ctx context.Context, w *watcher, f *Finding, r bus.Record) (reason string) {
	w.foundAt = f.Since
	if r.Sequence <= w.told {
		return "" // it was found before this process was started
	}
	t.stale(drifted{f.Cause, f.Since, f.Ratio / f.BeforeRatio})
	t.mu.Lock()
	delete(t.trials, schemas.TargetEpochTime) // it begins again without what is no longer true
	t.mu.Unlock()
	e := f.drift(schemas.TargetEpochTime, w.digest, r.Sequence, r.StoredAt, t.changes.between(f.LooseSince, r.StoredAt))
	w.unsaid = append(w.unsaid, e)
	t.say(ctx, w)
	t.metrics.drifts.Inc()
	t.log.Info("drift", "target", e.Target, "scope", e.Scope, "node", e.Node, "model", e.Model, "ratio", e.Ratio, "since", e.SinceAt, "jobs", e.Jobs)
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

// recent returns the examples of a target as they are true now. Only the time of
// epochs is watched.
func (t *Trainer) recent(target string, examples []Example) []Example {
	if target != schemas.TargetEpochTime {
		return examples
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return recent(examples, t.drifts)
}

// recallDrifts reads what drifted before this process was started, and returns
// the sequence of the last job's event that showed it.
func (t *Trainer) recallDrifts(ctx context.Context) (last uint64, err error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	o := bus.FollowOptions{Stream: schemas.StreamRegressor, Subjects: []string{schemas.RegressorSubject(schemas.TargetEpochTime, schemas.EventDrift)}, CaughtUp: stop}
	err = t.bus.Follow(reading, o, func(r bus.Record) error {
		e := r.Event.(*schemas.Drift)
		t.stale(drifted{Scope{e.Scope, e.Node + e.Model}, e.SinceAt, e.Ratio / e.BeforeRatio})
		last = max(last, e.CauseSequence)
		return nil
	})
	return last, err
}

// followNodes notes which nodes join, leave and change.
func (t *Trainer) followNodes(ctx context.Context) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: func() { live = true }}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Sample); ok {
			t.changes.sample(e, live)
		}
		return nil
	})
}
