package main

import (
	"context"
	"time"

	"courier/bus"
	"courier/report"
	"courier/schemas"
	"courier/services"
)

// fitTimeout bounds the wait for fits: a million examples take a minute for each target, and a
// running fit ends first.
const fitTimeout = 10 * time.Minute

type regressorTrain struct {
	natsFlags
	outputFlags
	Target  string `help:"Only fit this target (epoch_time, startup_time, accuracy)." placeholder:"TARGET"`
	Promote bool   `help:"Promote the fitted regressors at once, without comparing them with the champions on later jobs."`
}

// Run requests fits, and shows their progress on a terminal.
func (c *regressorTrain) Run(w *environment) error {
	q := schemas.TrainRequest{Target: c.Target, Promote: c.Promote}
	if err := q.Validate(); err != nil {
		return err
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, fitTimeout)
	defer cancel()
	stop := func() {}
	if services.IsTerminal(w.stderr) {
		stop = showFitting(ctx, b, w, c.Target)
	}
	var reply schemas.TrainReply
	err = b.Request(ctx, q.Subject(), &q, &reply)
	stop()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return indented(w.stdout, &reply)
	}
	return report.Trained(w.stdout, &reply)
}

// showFitting draws a progress bar for each fit of a target, or of all, until stop is called.
func showFitting(ctx context.Context, b *bus.Bus, w *environment, target string) (stop func()) {
	if target == "" {
		target = "*"
	}
	listening, cancel := context.WithCancel(ctx)
	p, done := &services.FittingBars{Out: w.stderr, Terminal: true}, make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Listen(listening, schemas.RegressorSubject(target, schemas.EventFitting),
			p.Handle); err != nil {
			w.log.Warn("cannot show progress", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
		p.End()
	}
}
