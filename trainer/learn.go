package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/regress/treefile"
	"courier/schemas"
)

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

// learn fits a target on the log at least up to a sequence, and promotes the result. outcome is a
// metric label.
func (t *Trainer) learn(
	ctx context.Context, last uint64, target string, reason fitReason, reply *schemas.TrainReply,
) (outcome string, err error) {
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
		c, err = t.fit(ctx, &l, target)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := t.o.step("fitted"); err != nil {
		return "", err
	}
	by, why := schemas.DecidedFit, reason.String()
	if c.files.Correction != "" {
		by, why = schemas.DecidedCorrection, c.files.Correction
	}
	return t.place(ctx, c, l.last, target, by, why, reply)
}

// fit fits one target, and updates the state of its champion.
func (t *Trainer) fit(
	ctx context.Context, l *exampleSet, target string,
) (*fittedCandidate, error) {
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

// computeWhileServing runs a long computation and carries out commands meanwhile, so that a rollback
// does not wait for a fit.
func (t *Trainer) computeWhileServing(ctx context.Context, compute func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- compute() }()
	for {
		select {
		case err := <-ended:
			return err
		case command := <-t.commands:
			command(ctx)
		}
	}
}
