package main

import (
	"context"
	"errors"

	"courier/workloads/digits"
)

type workloadCommand struct {
	Digits digitsCommand `cmd:"" help:"Train a network on the UCI optical digits." passthrough:""`
}

type digitsCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Flags of the workload; see courier workload digits --help."`
}

// stoppedStatus is the exit status of a shell for a command that SIGTERM ended.
const stoppedStatus = exitStatus(128 + 15)

func (c *digitsCommand) Run(w *environment) error {
	err := digits.Run(w.ctx, c.Args, w.stdout)
	if errors.Is(err, context.Canceled) {
		return stoppedStatus
	}
	return err
}
