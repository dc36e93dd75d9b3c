package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/regress/treefile"
	"courier/schemas"
)

// fitReason is the reason of a fit.
type fitReason uint8

const (
	reasonNone fitReason = iota
	reasonFirst
	reasonEnoughEpochs
	reasonRunEnded
	reasonSchedule
	reasonRequest
)

// String returns the reason as events contain it.
func (r fitReason) String() string {
	return [...]string{
		reasonNone:         "",
		reasonFirst:        "the first regressor",
		reasonEnoughEpochs: "enough new epochs",
		reasonRunEnded:     "a run has ended",
		reasonSchedule:     "on schedule",
		reasonRequest:      "requested",
	}[r]
}

// train fits each target of a request on the current past.
func (t *Trainer) train(ctx context.Context, request fitRequest) (schemas.TrainReply, error) {
	reply := schemas.TrainReply{Promoted: []schemas.Promoted{}}
	last, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return reply, err
	}
	for _, target := range request.targets {
		outcome, err := t.learn(ctx, last, target, request.reason, &reply)
		switch {
		case errors.Is(err, ErrTooFewExamples):
			t.metrics.fits.WithLabelValues(target, "too_few").Inc()
			reply.Waiting = append(reply.Waiting, err.Error())
		case err != nil:
			t.metrics.fits.WithLabelValues(target, "error").Inc()
			return reply, err
		default:
			t.metrics.fits.WithLabelValues(target, outcome).Inc()
		}
	}
	return reply, nil
}

// learn fits a target on the log at least up to a sequence, unless the request is outdated, and
// promotes the result. outcome is a metric label.
func (t *Trainer) learn(
	ctx context.Context, last uint64, target string, reason fitReason, reply *schemas.TrainReply,
) (outcome string, err error) {
	_, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if revision > 0 && reason == reasonFirst { // an earlier request has fitted it
		if t.newEpochs.Load() < int64(t.o.NewEpochs) {
			return "late", nil
		}
		reason = reasonEnoughEpochs
	}
	var l exampleSet
	var c *fittedCandidate
	err = t.computeWhileServing(ctx, func() (err error) {
		if err = t.o.step("fitting"); err != nil {
			return err
		}
		if l, err = t.recall(ctx, target, last); err != nil {
			return err
		}
		for reason, n := range l.skipped {
			t.metrics.skipped.WithLabelValues(reason).Set(float64(n))
		}
		c, err = t.fit(ctx, l.examples, target)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := t.o.step("fitted"); err != nil {
		return "", err
	}
	return t.place(ctx, c, l.last, target, reason.String(), reply)
}

// place promotes a candidate that was fitted on the log up to a sequence, unless it equals the
// champion.
func (t *Trainer) place(
	ctx context.Context, c *fittedCandidate, last uint64, target, reason string,
	reply *schemas.TrainReply,
) (outcome string, err error) {
	// The champion may have changed during the fit.
	champion, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if champion.ModelDigest == c.fitted.ModelDigest &&
		champion.ManifestDigest == c.fitted.ManifestDigest {
		reply.Waiting = append(reply.Waiting,
			target+": the fit equals the champion, which stays in use")
		reply.Promoted = append(reply.Promoted, promoted(champion, revision, c.fitted))
		return "same", nil
	}
	g := schemas.Grounds{
		Reason:        reason,
		DecidedBy:     schemas.DecidedGrowth, // the candidate has learned from more runs
		Rival:         champion.ModelDigest,
		SinceSequence: last,
	}
	if revision == 0 {
		g.DecidedBy = schemas.DecidedFirst
	}
	if err := t.publishCandidate(ctx, c, target, reason, &g); err != nil {
		return "", err
	}
	p, err := t.promote(ctx, target, c.fitted, g, revision)
	if err == nil {
		reply.Promoted = append(reply.Promoted, p)
	}
	return "promoted", err
}

// fittedCandidate is a regressor that is not placed yet.
type fittedCandidate struct {
	files  Files
	fitted schemas.Fitted
}

// fit fits one target, and updates the state of its champion.
func (t *Trainer) fit(
	ctx context.Context, examples []Example, target string,
) (*fittedCandidate, error) {
	begin := time.Now()
	t.metrics.examples.WithLabelValues(target).Set(float64(len(examples)))
	if len(examples) == 0 {
		return nil, fmt.Errorf("fit %s: %w: no examples", target, ErrTooFewExamples)
	}
	var before *treefile.Manifest
	if champion := (*t.champions.Load())[target]; champion != nil {
		before = champion.manifest
	}
	files, err := Fit(ctx, target, examples, before, t.o)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	t.metrics.seconds.WithLabelValues(target).Observe(took.Seconds())
	return newCandidate(files, took)
}

// newCandidate loads a regressor as an advisor does, so that a regressor which an advisor would
// refuse is an error here.
func newCandidate(files Files, took time.Duration) (*fittedCandidate, error) {
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		return nil, fmt.Errorf("load the fitted regressor: %w", err)
	}
	c := &fittedCandidate{files: files, fitted: fitted(file.Manifest())}
	c.fitted.ModelDigest, c.fitted.ManifestDigest = digestOf(files.Model), digestOf(files.Manifest)
	c.fitted.FitSeconds = took.Seconds()
	return c, nil
}

// fitted returns the figures of a fit from its manifest.
func fitted(m *treefile.Manifest) schemas.Fitted {
	f := schemas.Fitted{
		Family:   "hierarchy",
		Examples: uint64(m.Examples.Count),
		Settings: uint64(m.Examples.Configurations),
	}
	if m.HeldOutError != nil {
		f.MedianAbsoluteRatio = *m.HeldOutError
	}
	return f
}
