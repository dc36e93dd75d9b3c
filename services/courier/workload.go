package main

import (
	"courier/deploy/workloads/digits"
)

type workloadCommand struct {
	Digits digitsCommand `cmd:"" help:"Train a network on the UCI optical digits." passthrough:""`
}

type digitsCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Flags of the workload; --help shows them."`
}

func (c *digitsCommand) Run(w *world) error { return digits.Run(w.ctx, c.Args, w.stdout) }
