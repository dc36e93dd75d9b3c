package trainer

import (
	"context"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// requestCorrection signals the work goroutine, which also corrects during a fit.
func (t *Trainer) requestCorrection() { signal(t.correctionSignal) }

// signal wakes the receiver of a channel that holds one value.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has not taken the last one yet
	}
}

// correctThrottled corrects the served regressor, and then pauses for as long, so that corrections
// take at most half of the time.
func (t *Trainer) correctThrottled(ctx context.Context) {
	begin := time.Now()
	if err := t.correct(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn("drift not corrected", "error", err)
	}
	select {
	case <-time.After(time.Since(begin)):
	case <-ctx.Done():
	}
}

// correct updates the correction factors of the served regressor by the runs that have ended. It
// does not fit, so it is fast and needs no turn among fits.
func (t *Trainer) correct(ctx context.Context) error {
	const target = schemas.TargetEpochTime
	champion := (*t.champions.Load())[target]
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
	begin := time.Now()
	examples := withForeignAtStart(target, thin(l.examples, t.o.Examples))
	foreign := foreignOf(champion.manifest)
	runs := evidenceRuns(target, examples, foreign)
	state, isNew, err := before.Correct(runs)
	if err != nil || !isNew {
		return err
	}
	m := manifestOf(target, examples, champion.manifest.HeldOutError, t.o)
	files, err := encodeState(m, runs, foreign, state)
	if err != nil {
		return err
	}
	c, err := newCandidate(files, time.Since(begin))
	if err != nil {
		return err
	}
	reason := correctionReason(state)
	outcome, err := t.place(ctx, c, l.last, target, schemas.DecidedCorrection, reason, &schemas.TrainReply{})
	if err == nil {
		t.metrics.fits.WithLabelValues(target, "corrected").Inc()
		t.log.Debug("drift corrected", "reason", reason, "outcome", outcome)
	}
	return err
}

// correctionReason returns the reason for serving a corrected state.
func correctionReason(s *evidence.State) string {
	factors := s.Factors()
	switch {
	case !s.Corrected:
		return "drift: the last runs match their predictions again"
	case len(factors) == 0:
		return "drift: the last runs did not match their predictions"
	}
	strongest := &factors[0]
	for i := range factors {
		if factors[i].Evidence > strongest.Evidence {
			strongest = &factors[i]
		}
	}
	return "drift: " + describeFactor(strongest)
}
