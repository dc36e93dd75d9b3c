package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"courier/services"
	"courier/tune"
)

type tuneCommand struct {
	outputFormatFlags
	outputFlags
	Param     []string      `help:"Parameter with its values: lr=log:1e-4..1e-1 (a range with uniform logarithms), dropout=0..0.5, layers=1..8 (integers) or batch=16,32,64 (a list). It replaces {lr} in the command. Repeat the flag for each parameter." placeholder:"NAME=VALUES" sep:"none"`
	Trials    int           `help:"Number of combinations of the parameters to try." default:"16"`
	Eta       int           `help:"Each stage keeps one of this number of trials." default:"2"`
	Epochs    int           `help:"Epochs of a trial that reaches the last stage." required:""`
	Objective string        `help:"Figure that ranks the trials; auto: the accuracy if the first epoch reports one, else the loss." enum:"auto,accuracy,loss" default:"auto"`
	MaxTime   time.Duration `help:"Time for the tuning, such as 30m, which is never exceeded. The cheapest resources within it are used. Interruptions do not count. 0s: no limit." default:"0s"`
	Budget    float64       `help:"Core-hours for the tuning. The fastest resources within them are used. 0: no limit." default:"0"`
	CPUs      []int         `name:"cpus" help:"Numbers of CPUs of a trial to choose from, stage by stage; {cpus} in the command." default:"1"`
	CPUsTotal *int          `name:"cpus-total" help:"CPUs of all running trials (default: those of this machine)." placeholder:"INT"`
	Seed      uint64        `help:"Seed of the values of the parameters." default:"1"`
	Dir       string        `help:"Directory of the tuning. If it has an unfinished one with the same design, that continues." default:"courier-tuning" type:"path"`
	Command   []string      `arg:"" optional:"" passthrough:"" help:"Training command; {epoch} (epochs done), {epochs} (epochs to reach), {cpus}, {trial}, {dir} (directory of the trial, for checkpoints) and the parameters are replaced."`
}

func (c *tuneCommand) Run(w *environment) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	for _, message := range o.Space.Narrow() {
		fmt.Fprintf(w.stderr, "courier: %s\n", message)
	}
	unlock, err := services.LockDir(c.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	job, err := c.job(w)
	if err != nil {
		return err
	}
	launcher := &tune.Launcher{Dir: c.Dir, Options: o, Log: w.log, Job: job}
	defer func() { _ = os.RemoveAll(filepath.Join(c.Dir, "spool")) }() // the record has all epochs
	tuning, err := tune.Open(c.Dir, o)
	if err != nil {
		return err
	}
	defer func() { _ = tuning.Close() }() // each line is on disk

	bar, printf := services.NewProgressBar(w.stderr, 1), services.Messages(w.stderr)
	ranking, err := tuning.Run(w.ctx, launcher.Measure, func(p tune.TuningProgress) {
		if p.Message != "" {
			printf("courier: %s", p.Message)
		}
		if bar.Terminal {
			bar.Total = max(1, p.Total)
			bar.Draw(min(p.Done, bar.Total), p.Text)
		}
	})
	bar.Clear()
	if errors.Is(err, tune.ErrInterrupted) {
		printf("courier: interrupted: the same command continues the tuning in %s", c.Dir)
		return exitStatus(130)
	}
	if ranking == nil {
		return err
	}
	if err != nil { // the bound was too small
		err = notMet{err}
	}
	return errors.Join(c.print(w, ranking, ranking.WriteText), err)
}

func (c *tuneCommand) options() (tune.Options, error) {
	command := trainingCommand(c.Command)
	space, err := tune.ParseSpace(c.Param)
	if err != nil {
		return tune.Options{}, usagef("--param: %w", err)
	}
	o := tune.Options{
		Command:   command,
		Space:     space,
		Trials:    c.Trials,
		Eta:       c.Eta,
		Epochs:    c.Epochs,
		Objective: c.Objective,
		Seed:      c.Seed,
		CPUs:      c.CPUs,
		Pool:      runtime.NumCPU(),
		MaxTime:   c.MaxTime,
		Budget:    c.Budget,
	}
	if c.CPUsTotal != nil {
		o.Pool = *c.CPUsTotal
	}
	switch { // zero fields of the options are defaults, but zero flags are mistakes
	case o.Eta == 0:
		return o, usagef("--eta: 0 is below 2")
	case o.Pool == 0:
		return o, usagef("--cpus-total: 0 is below 1")
	}
	return o, nil
}
