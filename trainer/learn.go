package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/regress/treefile"
	"courier/schemas"
)

// train fits targets on the current past. It logs an error.
func (t *Trainer) train(ctx context.Context, targets []string, reason fitReason) (schemas.TrainReply, error) {
	begin := time.Now()
	t.newEpochs.Store(0)
	reply, err := t.trainEach(ctx, targets, reason)
	t.fittedAt = time.Now()
	t.fitDuration = t.fittedAt.Sub(begin)
	if err != nil && ctx.Err() == nil {
		t.log.Warn("fit ended with an error", "reason", reason, "error", err)
	}
	return reply, err
}

func (t *Trainer) trainEach(ctx context.Context, targets []string, reason fitReason) (schemas.TrainReply, error) {
	reply := schemas.TrainReply{Promoted: []schemas.Promoted{}}
	last, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return reply, err
	}
	for _, target := range targets {
		outcome, err := t.learn(ctx, last, target, reason, &reply)
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

// learn fits a target on the log at least up to a sequence, and promotes the result. outcome is a
// metric label.
func (t *Trainer) learn(
	ctx context.Context, last uint64, target string, reason fitReason, reply *schemas.TrainReply,
) (outcome string, err error) {
	l, err := t.recall(ctx, target, last)
	if err != nil {
		return "", err
	}
	for reason, n := range l.skipped {
		t.metrics.skipped.WithLabelValues(reason).Set(float64(n))
	}
	c, err := t.fit(ctx, &l, target)
	if err != nil {
		return "", err
	}
	if err := t.o.step("fitted"); err != nil {
		return "", err
	}
	by, why := schemas.DecidedFit, string(reason)
	if c.files.Correction != "" {
		by, why = schemas.DecidedCorrection, c.files.Correction
	}
	return t.place(ctx, c, l.last, target, by, why, reply)
}

// fit fits one target, and updates the state of its champion.
func (t *Trainer) fit(ctx context.Context, l *exampleSet, target string) (*fittedCandidate, error) {
	begin, examples := time.Now(), l.examples
	t.metrics.examples.WithLabelValues(target).Set(float64(len(examples)))
	if len(examples) == 0 {
		return nil, fmt.Errorf("fit %s: %w: no examples", target, ErrTooFewExamples)
	}
	var before *treefile.Manifest
	if champion := (*t.champions.Load())[target]; champion != nil {
		before = champion.manifest
	}
	o := t.o
	o.setAside, o.memory = l.aside, t.memories[target]
	files, err := Fit(ctx, target, examples, before, o)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	t.metrics.seconds.WithLabelValues(target).Observe(took.Seconds())
	return newCandidate(files, took)
}
