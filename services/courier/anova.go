package main

import (
	"fmt"
	"os"
	"strconv"

	"courier/regress/table"
	"courier/replay"
	"courier/report/study"
)

type anovaCommand struct {
	natsFlags
	Runs         string            `arg:"" optional:"" help:"Directory of courier explore, or a table of runs: CSV with a header line, or JSON lines; - is standard input. Without it, the runs of the event log." placeholder:"PATH"`
	Response     []string          `help:"Columns to explain (default: the time and the accuracy)." placeholder:"COLUMN"`
	Factors      []string          `help:"Columns whose values are levels (default: the settings that vary)." placeholder:"COLUMN"`
	Covariates   []string          `help:"Columns of numbers whose effect is a straight line." placeholder:"COLUMN"`
	Blocks       []string          `help:"Factors without interactions (default: the replication, if it varies)." placeholder:"COLUMN"`
	Interactions []string          `help:"Interactions such as cpus:jobs, or a number N for all of up to N factors; 1: none (default: 2, as far as there are enough runs)." placeholder:"TERMS"`
	Logarithm    bool              `help:"Analyse the logarithm of the responses, for influences that multiply."`
	Where        map[string]string `help:"Only use rows with these values, such as time_suspect=0." placeholder:"COLUMN=VALUE"`
	Seed         uint64            `help:"Seed of the folds of held-out runs." default:"1"`
	Output       string            `short:"o" help:"Output format (table, json, csv)." enum:"table,json,csv" default:"table"`
	HTML         string            `help:"Also write a report with plots to this HTML file." placeholder:"FILE"`
	NoRegressors bool              `help:"Do not compare regressors."`
}

func (c *anovaCommand) Run(w *environment) error {
	o := study.Options{
		Responses:    c.Response,
		Factors:      c.Factors,
		Covariates:   c.Covariates,
		Blocks:       c.Blocks,
		Interactions: c.Interactions,
		Logarithm:    c.Logarithm,
		Seed:         c.Seed,
		NoRegressors: c.NoRegressors || c.Output == "csv" && c.HTML == "",
	}
	if len(c.Interactions) == 1 {
		if order, err := strconv.Atoi(c.Interactions[0]); err == nil {
			if order < 1 {
				return fmt.Errorf("--interactions is %d, want 1 or more", order)
			}
			o.Order, o.Interactions = order, nil
		}
	}
	source, t, err := c.read(w)
	if err == nil {
		err = t.Where(c.Where)
	}
	if err != nil {
		return err
	}
	s, err := study.Analyse(w.ctx, t, o)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	s.Source = source
	if c.HTML != "" {
		if err := writeOut(w, c.HTML, s.WriteHTML); err != nil || c.HTML == "-" {
			return err
		}
	}
	switch c.Output {
	case "json":
		return s.WriteJSON(w.stdout)
	case "csv":
		return s.WriteCSV(w.stdout)
	}
	return s.WriteText(w.stdout)
}

// read returns the table of runs and its name.
func (c *anovaCommand) read(w *environment) (string, *table.Table, error) {
	if c.Runs == "" {
		t, err := readRuns(w, c.natsFlags)
		return "the event log", t, err
	}
	return study.ReadPath(c.Runs, os.Stdin)
}

// readRuns returns the runs of the event log.
func readRuns(w *environment, n natsFlags) (*table.Table, error) {
	b, err := n.connect(w)
	if err != nil {
		return nil, err
	}
	defer closeBus(b)
	return replay.ReadRuns(w.ctx, b)
}
