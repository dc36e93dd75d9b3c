package main

import (
	"courier/report"
	"courier/schemas"
)

type regressorList struct {
	natsFlags
	outputFlags
	Target string `help:"Only regressors of this target (epoch_time, startup_time, accuracy)." placeholder:"TARGET"`
}

func (c *regressorList) Run(w *environment) error {
	q := schemas.RegressorListRequest{Target: c.Target}
	if err := q.Validate(); err != nil {
		return err
	}
	return ask(w, c.natsFlags, c.outputFlags, q.Subject(), &q, report.Regressors)
}
