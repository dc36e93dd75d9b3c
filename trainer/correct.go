package trainer

import (
	"context"
	"fmt"
	"time"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// noteEnd compares a run that ended with what the champion expects of it, if it is one of package
// evidence, and asks for a correction if jobs drift.
func (t *Trainer) noteEnd(w *watcher, runs ...*run) {
	if w.state == nil {
		return
	}
	var examples []Example
	for _, r := range runs {
		examples = w.past.appendExamples(examples, r, schemas.TargetEpochTime)
	}
	next, isNew, err := w.state.Correct(evidenceRuns(schemas.TargetEpochTime, examples, w.foreign))
	if err != nil {
		t.log.Warn("runs not compared with predictions", "error", err)
		return
	}
	if w.state = next; isNew && w.live {
		t.askCorrection()
	}
}

// catchUp compares the runs with a new champion that ended since it was learned.
func (t *Trainer) catchUp(w *watcher) {
	if w.state == nil || !w.live {
		return
	}
	var ended []*run
	for _, r := range w.past.order {
		if !r.dropped && r.outcome != "" && r.span.Until.After(w.state.Through) {
			ended = append(ended, r)
		}
	}
	t.noteEnd(w, ended...)
}

// askCorrection has the worker correct what is served, also while a fit computes.
func (t *Trainer) askCorrection() {
	select {
	case t.corrections <- struct{}{}:
	default: // it was asked for already
	}
}

// correctInTime corrects what is served, or asks for it later if corrections would take more than
// half of the time.
func (t *Trainer) correctInTime(ctx context.Context) {
	if wait := t.correctTook - time.Since(t.corrected); wait > 0 {
		if !t.deferred.Swap(true) {
			time.AfterFunc(wait, func() {
				t.deferred.Store(false)
				t.askCorrection()
			})
		}
		return
	}
	begin := time.Now()
	if err := t.correct(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn("drift not corrected", "error", err)
	}
	t.corrected = time.Now()
	t.correctTook = t.corrected.Sub(begin)
}

// correct serves what the runs that have ended show of drift. It does not fit, so that it neither
// waits for its turn nor takes long.
func (t *Trainer) correct(ctx context.Context) error {
	const target = schemas.TargetEpochTime
	champion := (*t.standings.Load())[target].champion
	before := champion.evidence()
	if before == nil {
		return nil
	}
	last, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return err
	}
	l, err := t.recall(ctx, target, last)
	if err != nil {
		return err
	}
	begin, examples := time.Now(), thin(l.examples, t.o.Examples)
	manifest := champion.predictor.Manifest()
	foreign := foreignOf(manifest)
	state, isNew, err := before.Correct(evidenceRuns(target, examples, foreign))
	if err != nil || !isNew {
		return err
	}
	r, err := serve(ctx, target, examples, foreign, state, manifest.Evaluations, t.o)
	if err != nil {
		return err
	}
	complete(r, examples, t.o)
	c, err := newCandidate(r, examples, time.Since(begin))
	if err != nil {
		return err
	}
	w := wish{targets: []string{target}, reason: correctionReason(state)}
	outcome, err := t.place(ctx, c, l.last, target, &w, &schemas.TrainReply{})
	if err == nil {
		t.metrics.fits.WithLabelValues(target, "corrected").Inc()
		t.log.Debug("drift corrected", "reason", w.reason, "outcome", outcome)
	}
	return err
}

// correctionReason says in words what corrects a state.
func correctionReason(s *evidence.State) string {
	factors := s.Factors()
	switch {
	case !s.Corrected:
		return "drift: the last runs are as predicted again"
	case len(factors) == 0:
		return "drift: the last runs were not as predicted"
	}
	strongest := &factors[0]
	for i := range factors {
		if factors[i].Evidence > strongest.Evidence {
			strongest = &factors[i]
		}
	}
	return "drift: " + factorWords(strongest)
}

// newCandidate encodes what was fitted, and reads it as an advisor does. What an advisor would
// refuse is an error here.
func newCandidate(
	r *regress.Regressor, examples []Example, took time.Duration,
) (*candidate, error) {
	c := &candidate{examples: examples, model: r.EncodeModel()}
	var err error
	if c.manifest, err = r.EncodeManifest(); err != nil {
		return nil, err
	}
	if c.predictor, err = regress.Load(c.model, c.manifest); err != nil {
		return nil, fmt.Errorf("read what was fitted: %w", err)
	}
	c.fitted = fitted(c.predictor.Manifest())
	c.fitted.ModelDigest, c.fitted.ManifestDigest = digestOf(c.model), digestOf(c.manifest)
	c.fitted.FitSeconds = took.Seconds()
	return c, nil
}
