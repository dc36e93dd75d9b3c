package main

import (
	"context"
	"time"

	"courier/receipt"
)

type receiptCommand struct {
	natsFlags
	Output string `short:"o" help:"Output format (text, json, markdown)." enum:"text,json,markdown" default:"text" env:"COURIER_OUTPUT"`
	Job    string `arg:"" help:"ID of the job."`
}

func (c *receiptCommand) Run(w *environment) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	r, err := receipt.Read(ctx, b, c.Job)
	if err != nil {
		return err
	}
	switch c.Output {
	case "json":
		return indented(w.stdout, r)
	case "markdown":
		return r.WriteMarkdown(w.stdout)
	}
	return r.WriteText(w.stdout)
}
