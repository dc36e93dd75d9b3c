package main

import (
	"courier/report"
	"courier/schemas"
)

type scoreCommand struct {
	natsFlags
	outputFlags
}

func (c *scoreCommand) Run(w *environment) error {
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobScore, &schemas.ScoreRequest{},
		report.Score)
}
