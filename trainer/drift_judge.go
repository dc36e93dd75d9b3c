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

// epochsPerOutcome is the number of epochs of a running job whose mean is one residual. The end of
// a run adds one residual for the remaining epochs. Errors of epochs of one run are correlated, so
// they are averaged.
const epochsPerOutcome = 20

// newsLimit is the age above which an event does not describe the current cluster: it belongs to an
// imported run or a late spool.
const newsLimit = time.Hour

// maxUnpublished is the number of drifts that are stored while NATS is unreachable; older ones are
// dropped.
const maxUnpublished = 64

// runResiduals sums the residuals of a run since its last outcome.
type runResiduals struct {
	sum         float64 // of log(measured / predicted)
	n           int
	withinBound int       // epochs within the bound
	bounded     int       // epochs with a bound
	begin       time.Time // begin of the first epoch
}

// add adds the residual of an epoch. within reports whether it is within the bound; nil if there is
// none.
func (s *runResiduals) add(residual float64, within *bool) {
	s.sum, s.n = s.sum+residual, s.n+1
	if within != nil {
		s.bounded++
		if *within {
			s.withinBound++
		}
	}
}

// judgeEvent compares an event with its prediction, and returns the drift that it reveals.
func (fw *follower) judgeEvent(n *appliedEvent) (f Finding, found bool) {
	at := n.Event.Stamped().At
	if !at.After(fw.epochTime.Manifest().Examples.Last) {
		return f, false // the champion was fitted on it
	}
	if n.StoredAt.Sub(at) > newsLimit {
		return f, false // an imported run does not describe the current cluster
	}
	if fw.watch == nil {
		fw.calibrate() // the past now contains the examples of the champion
	}
	switch n.Event.(type) {
	case *schemas.Epoch:
		return fw.judgeEpoch(n.run, n.epoch)
	case *schemas.Ended:
		return fw.judgeEnd(n.run)
	}
	return f, false
}

// judgeEpoch compares an epoch with its prediction.
func (fw *follower) judgeEpoch(r *run, e *keptEpoch) (f Finding, found bool) {
	x, ok := fw.past.example(r, e, false, schemas.TargetEpochTime)
	if !ok {
		return f, false
	}
	residual, within, ok := fw.residual(&x)
	if !ok {
		return f, false
	}
	s, _ := fw.running.get(r.key)
	if s == nil {
		s = &runResiduals{begin: e.begin()}
		fw.running.put(r.key, s)
	}
	s.add(residual, within)
	if s.n < epochsPerOutcome {
		return f, false
	}
	return fw.endOutcome(r)
}

// judgeEnd compares the remaining epochs of an ended run with their predictions.
func (fw *follower) judgeEnd(r *run) (f Finding, found bool) {
	if r.epochCount > 0 {
		return fw.endOutcome(r)
	}
	x, ok := fw.past.wholeJob(r, schemas.TargetEpochTime)
	if !ok {
		return f, false
	}
	residual, within, ok := fw.residual(&x)
	if !ok {
		return f, false
	}
	s := &runResiduals{begin: r.span.From}
	s.add(residual, within)
	fw.running.put(r.key, s)
	return fw.endOutcome(r)
}

// endOutcome adds the mean residual of a run to the watch.
func (fw *follower) endOutcome(r *run) (f Finding, found bool) {
	s, _ := fw.running.get(r.key)
	if s == nil {
		return f, false
	}
	fw.running.remove(r.key)
	if fw.replicated != nil && !fw.replicated[settingOf(r)] {
		return f, false
	}
	return fw.watch.Add(JobResidual{
		At:          s.begin,
		Model:       r.level(),
		Nodes:       r.span.Nodes,
		Residual:    s.sum / float64(s.n),
		WithinBound: float64(s.withinBound) / float64(max(1, s.bounded)),
		HasBound:    s.bounded > 0,
	})
}

// minReplications is the number of runs, beyond one per configuration, above which the deviation
// within configurations is estimated.
const minReplications = 5

// calibrationRuns is the number of recent runs of the champion's examples that calibrate a watch.
// It gives the standard deviation to 2 % (1/sqrt(2n) for normal residuals).
const calibrationRuns = 2000

// runSetting is the configuration that a user selects for a run, without its load.
type runSetting struct {
	model       string // level
	batch, cpus uint32
}

// settingOf returns the configuration of a run at its last epoch, or at its end.
func settingOf(r *run) runSetting {
	m := runSetting{r.level(), r.batch, r.span.CPUs}
	if r.whole != nil {
		m.batch, m.cpus = r.whole.batch, r.whole.cpus
	}
	return m
}

// calibrate starts a watch for the champion. The regressor's residuals come from held-out
// configurations and include its error for unseen configurations, which is no drift. Where
// configurations were run several times, the deviation is measured between their runs and the
// champion's prediction (with one degree of freedom less per configuration), and only runs of these
// configurations are compared. Otherwise it is the regressor's.
func (fw *follower) calibrate() {
	d := deviation(fw.epochTime.Manifest().Calibration.Residuals)
	fw.replicated = nil
	settings := map[runSetting]bool{}
	runs, squares := 0, 0.0
	for _, r := range slices.Backward(fw.past.order) {
		if runs == calibrationRuns {
			break
		}
		mean, ok := fw.meanResidual(r)
		if !ok {
			continue
		}
		runs, squares = runs+1, squares+mean*mean
		settings[settingOf(r)] = true
	}
	if free := runs - len(settings); free >= minReplications {
		if replicated := math.Sqrt(squares / float64(free)); replicated < d {
			d, fw.replicated = replicated, settings
		}
	}
	fw.watch = NewWatch(d)
}

// meanResidual returns the mean residual of the last epochs of a run (at most epochsPerOutcome)
// that the champion was fitted on; ok is false if there are none.
func (fw *follower) meanResidual(r *run) (mean float64, ok bool) {
	last := fw.epochTime.Manifest().Examples.Last
	if r.dropped || len(r.epochs) == 0 || r.epochs[0].end().After(last) {
		return 0, false
	}
	var sum, n float64
	for i := len(r.epochs) - 1; i >= 0 && n < epochsPerOutcome; i-- {
		e := &r.epochs[i]
		if e.end().After(last) {
			continue
		}
		x, usable := fw.past.example(r, e, i < r.frozen, schemas.TargetEpochTime)
		if !usable {
			continue
		}
		if residual, _, known := fw.residual(&x); known {
			sum, n = sum+residual, n+1
		}
	}
	return sum / n, n > 0
}

// residual returns log(measured / predicted) of an example, and whether the time is within the
// bound at the default confidence (nil: no bound). ok is false if the champion cannot predict it. A
// node that differs from all known nodes is predicted as the most similar one; a large error
// then causes a fit.
func (fw *follower) residual(x *Example) (residual float64, within *bool, ok bool) {
	code, known := fw.encoder.Model(x.level())
	if !known {
		return 0, nil, false
	}
	x.Features.ModelCode, x.Features.Node = code, fw.encoder.Nearest(x.Hardware)
	row := make([]float64, len(fw.encoder.Columns()))
	fw.encoder.Fill(row, &x.Features)
	p, err := fw.epochTime.Predict(row)
	if err != nil || p.Extrapolated || !(p.Value > 0 && x.Value > 0) {
		return 0, nil, false
	}
	if bound, bounded := fw.epochTime.UpperBound(p, schemas.DefaultConfidence); bounded {
		isWithin := x.Value <= bound
		within = &isWithin
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

// setChampion installs a new champion, unless this version does not know its features.
func (fw *follower) setChampion(p *regress.Predictor, digest string) {
	encoder, err := readEncoder(p.Manifest())
	if err != nil || p.Manifest().Transform != regress.Log {
		return
	}
	fw.epochTime, fw.digest, fw.encoder = p, digest, encoder
	fw.watch, fw.windowBegin = nil, time.Time{}
	fw.running = newLRU[runKey, *runResiduals](maxShadows)
}

// readEncoder returns the encoder of a regressor's features.
func readEncoder(m *regress.Manifest) (*schemas.Encoder, error) {
	inputs := make([]schemas.EncoderInput, len(m.Features))
	for i, f := range m.Features {
		inputs[i] = schemas.EncoderInput{
			Name: f.Name, Levels: f.Levels, Min: f.Min, Max: f.Max, Typical: f.Typical,
		}
	}
	return schemas.ReadEncoder(inputs)
}

// handleFinding publishes a drift and marks older examples as stale. It returns the reason for a
// fit.
func (t *Trainer) handleFinding(
	ctx context.Context, fw *follower, f *Finding, r *appliedEvent,
) (reason string) {
	fw.driftedAt = f.Since
	if r.Sequence <= fw.publishedThrough {
		return "" // published by an earlier process
	}
	t.rememberDrift(knownDrift{f.Cause, f.Since, f.Ratio / f.BeforeRatio})
	t.mu.Lock()
	delete(t.trials, schemas.TargetEpochTime) // restarts without stale jobs
	t.mu.Unlock()
	e := f.drift(schemas.TargetEpochTime, fw.digest, r.Sequence, r.StoredAt,
		t.nodeChanges.between(f.LooseSince, r.StoredAt))
	fw.unpublished = append(fw.unpublished[max(0, len(fw.unpublished)+1-maxUnpublished):], e)
	t.publishDrifts(ctx, fw)
	t.metrics.drifts.Inc()
	t.log.Info("drift",
		"target", e.Target,
		"scope", e.Scope,
		"node", e.Node,
		"model", e.Model,
		"dataset", e.Dataset,
		"ratio", e.Ratio,
		"since", e.SinceAt,
		"jobs", e.Jobs,
	)
	return "drift: " + e.Message
}

// publishDrifts publishes pending drifts. After an error it is retried with the next event.
func (t *Trainer) publishDrifts(ctx context.Context, fw *follower) {
	for len(fw.unpublished) > 0 {
		if _, err := t.bus.Publish(ctx, fw.unpublished[0]); err != nil {
			if ctx.Err() == nil {
				t.log.Warn("drift not published, will retry",
					"target", fw.unpublished[0].Target, "error", err)
			}
			return
		}
		fw.unpublished = fw.unpublished[1:]
	}
}

// checkWindow marks examples as stale that ADWIN dropped without a finding: the change was too slow
// or too small for Page-Hinkley.
func (t *Trainer) checkWindow(fw *follower) {
	_, since, cut := fw.watch.Window()
	if cut && since.After(fw.windowBegin) {
		if fw.windowBegin = since; fw.driftedAt.IsZero() || since.After(fw.driftedAt) {
			t.rememberDrift(knownDrift{DriftScope{Kind: ScopeAll}, since, 1})
		}
	}
}

// rememberDrift marks the examples from before a drift as stale.
func (t *Trainer) rememberDrift(d knownDrift) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drifts = append(t.drifts[max(0, len(t.drifts)+1-maxDrifts):], d)
}

// recallDrifts reads the drifts that earlier processes published, and returns the sequence of the
// last job event that revealed one.
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
			return nil // a correction of MethodEvidence
		}
		t.rememberDrift(knownDrift{causeOf(e), e.SinceAt, e.Ratio / e.BeforeRatio})
		last = max(last, e.CauseSequence)
		return nil
	})
	return last, err
}

// followNodes records which nodes join, leave and change.
func (t *Trainer) followNodes(ctx context.Context) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: func() {
		live = true
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Sample); ok {
			t.nodeChanges.sample(e, live)
		}
		return nil
	})
}
