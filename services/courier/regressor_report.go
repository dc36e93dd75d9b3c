package main

import (
	"io"
	"time"

	"courier/report"
	"courier/schemas"
)

type regressorReport struct {
	natsFlags
	Target string `help:"epoch_time, startup_time or accuracy; absent: all." placeholder:"TARGET"`
	Out    string `help:"Page to write; - is standard output." required:"" placeholder:"FILE.html"`
}

// Run reads the log and writes the page. No database is asked, and no trainer.
func (c *regressorReport) Run(w *world) error {
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
	return writeOut(w, c.Out, func(out io.Writer) error { return life.WriteHTML(out, c.Target, buildVersion(), time.Now()) })
}
