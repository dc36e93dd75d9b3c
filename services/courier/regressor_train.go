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

// fitTimeout is how long a person waits for regressors: a million examples take a
// minute for each target, and a fit that runs already is waited for.
const fitTimeout = 10 * time.Minute

type regressorTrain struct {
	natsFlags
	outputFlags
	Target  string `help:"epoch_time, startup_time or accuracy; absent: all." placeholder:"TARGET"`
	Promote bool   `help:"Put what is fitted in use at once, without judging it on the jobs that come."`
}

// Run asks for a fit, and shows on a terminal how far it has come.
func (c *regressorTrain) Run(w *world) error {
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

// showFitting draws a bar for each fit of a target, or of all, until it is stopped.
func showFitting(ctx context.Context, b *bus.Bus, w *world, target string) (stop func()) {
	if target == "" {
		target = "*"
	}
	listening, cancel := context.WithCancel(ctx)
	p, done := &fittingBars{out: w.stderr, terminal: true}, make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Listen(listening, schemas.RegressorSubject(target, schemas.EventFitting), p.take); err != nil {
			w.log.Warn("progress is not shown", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
		p.end()
	}
}

// fittingBars is a bar for the fit in hand, one after the other.
type fittingBars struct {
	out      io.Writer
	terminal bool
	target   string
	bar      *bar // nil before the first
}

// take draws how far a fit has come; other events are ignored.
func (p *fittingBars) take(e schemas.Event) {
	f, ok := e.(*schemas.Fitting)
	if !ok || f.Planned == 0 {
		return
	}
	if p.bar == nil || p.target != f.Target || p.bar.total != int(f.Planned) {
		p.end()
		p.target, p.bar = f.Target, newBar(p.out, int(f.Planned))
		p.bar.terminal = p.terminal
	}
	p.bar.draw(int(min(f.Done, f.Planned)), "parts of "+f.Target+", "+f.Reason)
}

// end leaves the last bar where it is.
func (p *fittingBars) end() {
	if p.bar != nil {
		p.bar.end()
		p.bar = nil
	}
}

func printTrained(out io.Writer, r *schemas.TrainReply) error {
	for _, p := range r.Promoted {
		fmt.Fprintf(out, "%s: %s of %d examples in %d settings, %s, in use as revision %d\n", p.Target, p.Family, p.Examples, p.Settings,
			schemas.FormatError(p.Target, p.Family, p.MedianAbsoluteRatio), p.Revision)
	}
	for _, e := range r.Trained {
		fmt.Fprintf(out, "%s: %s of %d examples in %d settings, %s: challenger %.12s, to be judged on the jobs that come\n", e.Target, e.Family, e.Examples, e.Settings,
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
