package main

import (
	"context"
	"fmt"

	"courier/schemas"
)

type regressorPromote struct {
	natsFlags
	outputFlags
	Target string `arg:"" help:"Target of the regressor (epoch_time, startup_time, accuracy)."`
	Digest string `arg:"" help:"At least 6 digits of the digest of the regressor, from courier regressor list."`
	Reason string `help:"Reason to record." placeholder:"TEXT"`
}

func (c *regressorPromote) Run(w *environment) error {
	return change(w, c.natsFlags, c.outputFlags, &schemas.PromoteRequest{
		Target:      c.Target,
		ModelDigest: c.Digest,
		Reason:      c.Reason,
	})
}

type regressorRollback struct {
	natsFlags
	outputFlags
	Target string `arg:"" help:"Target of the regressor (epoch_time, startup_time, accuracy)."`
	Reason string `help:"Reason to record." placeholder:"TEXT"`
}

func (c *regressorRollback) Run(w *environment) error {
	return change(w, c.natsFlags, c.outputFlags, &schemas.RollbackRequest{
		Target: c.Target,
		Reason: c.Reason,
	})
}

// change requests another champion and prints it.
func change(w *environment, n natsFlags, o outputFlags, q schemas.Request) error {
	if err := q.Validate(); err != nil {
		return err
	}
	b, err := n.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, fitTimeout)
	defer cancel()
	var p schemas.Promoted
	if err := b.Request(ctx, q.Subject(), q, &p); err != nil {
		return err
	}
	if o.Output == "json" {
		return indented(w.stdout, &p)
	}
	champion := "is the first champion"
	if p.Rival != "" {
		champion = fmt.Sprintf("replaces the champion %.12s", p.Rival)
	}
	_, err = fmt.Fprintf(w.stdout,
		"%s: %.12s %s as revision %d (%s; %s of %d examples in %d configurations, %s)\n",
		p.Target, p.ModelDigest, champion, p.Revision, p.Reason, p.Family, p.Examples, p.Settings,
		schemas.FormatError(p.Target, p.Family, p.MedianAbsoluteRatio))
	return err
}
