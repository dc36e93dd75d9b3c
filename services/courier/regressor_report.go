package main

import (
	"io"
	"time"

	"courier/report"
	"courier/schemas"
)

type regressorReport struct {
	natsFlags
	Target string `help:"Only regressors of this target (epoch_time, startup_time, accuracy)." placeholder:"TARGET"`
	Out    string `help:"HTML file to write; - is standard output." required:"" placeholder:"FILE.html"`
}

// Run reads the log only; it needs neither a database nor a trainer.
func (c *regressorReport) Run(w *environment) error {
	q := schemas.RegressorListRequest{Target: c.Target}
	if err := q.Validate(); err != nil {
		return err
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	life, err := report.ReadLife(w.ctx, b)
	if err != nil {
		return err
	}
	return writeOut(w, c.Out, func(out io.Writer) error {
		return life.WriteHTML(out, c.Target, buildVersion(), time.Now())
	})
}
