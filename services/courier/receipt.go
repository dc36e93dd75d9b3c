package main

import (
	"context"
	"time"

	"courier/receipt"
	"courier/report/columns"
)

type receiptCommand struct {
	natsFlags
	Output string `short:"o" help:"Output format (table, json, csv, markdown)." enum:"table,json,csv,markdown" default:"table" env:"COURIER_OUTPUT"`
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
	case "markdown":
		return r.WriteMarkdown(w.stdout)
	case "csv": // one line, with the losses in one cell
		return columns.CSV(w.stdout, []receipt.JobReceipt{*r})
	}
	return outputFlags{c.Output}.print(w, r, r.WriteText)
}
