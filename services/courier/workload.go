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
	Args []string `arg:"" optional:"" passthrough:"" help:"Flags of the workload; --help shows them."`
}

// stoppedStatus is how a shell reports a command that SIGTERM ended: its epochs
// are printed, so there is nothing to say.
const stoppedStatus = exitStatus(128 + 15)

func (c *digitsCommand) Run(w *world) error {
	err := digits.Run(w.ctx, c.Args, w.stdout)
	if errors.Is(err, context.Canceled) {
		return stoppedStatus
	}
	return err
}
