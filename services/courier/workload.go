package main

import (
	"context"
	"errors"

	"courier/workloads/digits"
)

type workloadCommand struct {
	Workload []string `arg:"" passthrough:"" help:"Name of the workload, digits, which trains a network on the UCI optical digits, and its flags; see courier workload digits --help."`
}

// stoppedStatus is the exit status of a shell for a command that SIGTERM ended.
const stoppedStatus = exitStatus(128 + 15)

func (c *workloadCommand) Run(w *environment) error {
	if c.Workload[0] != "digits" {
		return usagef("there is no workload %s, only digits", c.Workload[0])
	}
	err := digits.Run(w.ctx, c.Workload[1:], w.stdout)
	if errors.Is(err, context.Canceled) {
		return stoppedStatus
	}
	return err
}
