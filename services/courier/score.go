package main

import (
	"courier/report"
	"courier/schemas"
)

type scoreCommand struct {
	natsFlags
	outputFlags
}

func (c *scoreCommand) Run(w *world) error {
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobScore, &schemas.ScoreRequest{},
		report.Score)
}
