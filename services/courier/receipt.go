package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"courier/receipt"
	"courier/report/columns"
	"courier/schemas"
)

type receiptCommand struct {
	natsFlags
	Output string   `short:"o" help:"Output format (table, json, csv, markdown)." enum:"table,json,csv,markdown" default:"table" env:"COURIER_OUTPUT"`
	Jobs   []string `arg:"" name:"job" help:"IDs of the jobs."`
}

func (c *receiptCommand) Run(w *environment) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	all := make([]receipt.JobReceipt, len(c.Jobs))
	for i, id := range c.Jobs {
		r, err := receipt.Read(ctx, b, id)
		if errors.Is(err, schemas.ErrForbidden) {
			err = schemas.Errorf(schemas.CodeForbidden, "",
				"%s; the page of the job shows its receipt", schemas.Plain(err))
		}
		if err != nil {
			return err
		}
		all[i] = *r
	}
	each := func(write func(*receipt.JobReceipt, io.Writer)) func(io.Writer) {
		return func(out io.Writer) {
			for i := range all {
				if i > 0 {
					fmt.Fprintln(out)
				}
				write(&all[i], out)
			}
		}
	}
	switch c.Output {
	case "markdown":
		var text strings.Builder
		each((*receipt.JobReceipt).WriteMarkdown)(&text)
		_, err := io.WriteString(w.stdout, text.String())
		return err
	case "csv": // one line for each job, with its losses in one cell
		return columns.CSV(w.stdout, all)
	}
	var result any = all
	if len(all) == 1 {
		result = &all[0]
	}
	return outputFlags{c.Output}.print(w, result, each((*receipt.JobReceipt).WriteText))
}
