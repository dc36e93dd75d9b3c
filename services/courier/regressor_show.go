package main

import "courier/report"

type regressorShow struct {
	regressorFlags
	outputFlags
}

// Run gets the regressor from the trainer, and its history from the log.
func (c *regressorShow) Run(w *environment) error {
	b, v, err := c.find(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	life, err := report.ReadLife(w.ctx, b)
	if err != nil {
		return err
	}
	s := &report.RegressorHistory{RegressorVersion: *v, Life: life.Of(v.Target, v.ModelDigest)}
	return c.print(w.stdout, s, s.WriteText)
}
