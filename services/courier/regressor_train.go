package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"courier/bus"
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
	return printTrained(w.stdout, &reply)
}

// showFitting draws a progress bar for each fit of a target, or of all, until stop is called.
func showFitting(ctx context.Context, b *bus.Bus, w *environment, target string) (stop func()) {
	if target == "" {
		target = "*"
	}
	listening, cancel := context.WithCancel(ctx)
	p, done := &fittingBars{out: w.stderr, terminal: true}, make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Listen(listening, schemas.RegressorSubject(target, schemas.EventFitting),
			p.handle); err != nil {
			w.log.Warn("cannot show progress", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
		p.end()
	}
}

// fittingBars draws a bar for the current fit.
type fittingBars struct {
	out      io.Writer
	terminal bool
	target   string
	bar      *services.ProgressBar // nil before the first fit
}

// handle draws the progress of a fit and ignores other events.
func (p *fittingBars) handle(e schemas.Event) {
	f, ok := e.(*schemas.Fitting)
	if !ok || f.Planned == 0 {
		return
	}
	if p.bar == nil || p.target != f.Target || p.bar.Total != int(f.Planned) {
		p.end()
		p.target, p.bar = f.Target, services.NewProgressBar(p.out, int(f.Planned))
		p.bar.Terminal = p.terminal
	}
	p.bar.Draw(int(min(f.Done, f.Planned)), "parts of "+f.Target+", "+f.Reason)
}

// end keeps the last bar on the terminal.
func (p *fittingBars) end() {
	if p.bar != nil {
		p.bar.End()
		p.bar = nil
	}
}

func printTrained(out io.Writer, r *schemas.TrainReply) error {
	for _, p := range r.Promoted {
		fmt.Fprintf(out,
			"%s: %s of %d examples in %d configurations, %s, champion as revision %d\n", p.Target,
			p.Family, p.Examples, p.Settings,
			schemas.FormatError(p.Target, p.Family, p.MedianAbsoluteRatio), p.Revision)
	}
	for _, e := range r.Trained {
		fmt.Fprintf(out,
			"%s: %s of %d examples in %d configurations, %s: challenger %.12s, to be compared on"+
				" later jobs\n", e.Target, e.Family, e.Examples, e.Settings,
			schemas.FormatError(e.Target, e.Family, e.MedianAbsoluteRatio), e.ModelDigest)
	}
	for _, e := range r.Rejected {
		fmt.Fprintf(out, "%s: rejected: %s\n", e.Target, e.Reason)
	}
	for _, reason := range r.Waiting {
		fmt.Fprintln(out, reason)
	}
	return nil
}
