package main

import (
	"fmt"

	"courier/services/certs"
)

type certsCommand struct{ certs.Options }

func (c *certsCommand) Run(w *environment) error {
	lines, err := certs.Create(c.Options)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(w.stdout, line)
	}
	return nil
}
