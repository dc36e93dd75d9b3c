package main

import (
	"os"

	"courier/services"
	"courier/services/top"
)

type topCommand struct {
	natsFlags
	Mine bool `help:"Only jobs of --user."`
	userFlag
}

func (c *topCommand) Run(w *environment) error {
	if !services.IsTerminal(w.stdout) {
		return usagef("courier top needs a terminal: courier jobs prints the list once")
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	o := top.Options{
		Bus: b, Color: w.layout().Color, Input: os.Stdin, Output: w.stdout, Environ: os.Environ(),
	}
	if c.Mine {
		o.User = c.asker(c.User)
	}
	return top.Run(w.ctx, o)
}
