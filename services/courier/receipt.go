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

func (c *receiptCommand) Help() string {
	return `Compares the prediction with the result, and lists the time that the job lost to other jobs on
its nodes and to waits for storage and memory, the batch size that would be advised now, and what
was learned. Time lost to neighbours is measured against the epochs without any; figures that were
not measured are left out.

Examples:
  courier receipt mlp-7
  courier receipt mlp-7 --output markdown`
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
