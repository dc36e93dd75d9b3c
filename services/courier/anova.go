package main

import (
	"fmt"
	"os"

	"courier/regress/table"
	"courier/replay"
	"courier/report/study"
)

type anovaCommand struct {
	natsFlags
	Runs string `arg:"" optional:"" help:"Directory of courier explore, or a table of runs: CSV with a header line, also with semicolons or tabs; - is standard input. Without it, the runs of the event log." placeholder:"PATH"`
	study.Options
	Where map[string]string `help:"Only use rows with these values, such as time_suspect=0." placeholder:"COLUMN=VALUE"`
	outputFlags
}

func (c *anovaCommand) Run(w *environment) error {
	c.NoRegressors = c.NoRegressors || c.Output == "csv"
	source, t, err := c.read(w)
	if err == nil {
		err = t.Where(c.Where)
	}
	if err != nil {
		return err
	}
	s, err := study.Analyse(w.ctx, t, c.Options)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	s.Source = source
	return c.print(w, s, s.WriteText)
}

func (c *anovaCommand) read(w *environment) (string, *table.Table, error) {
	if c.Runs == "" {
		t, err := readRuns(w, c.natsFlags)
		return "the event log", t, err
	}
	return study.ReadPath(c.Runs, os.Stdin)
}

func readRuns(w *environment, n natsFlags) (*table.Table, error) {
	b, err := n.connect(w)
	if err != nil {
		return nil, err
	}
	defer closeBus(b)
	return replay.ReadRuns(w.ctx, b)
}
