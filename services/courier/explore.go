package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"courier/bus"
	"courier/explore"
	"courier/schemas"
)

type exploreCommand struct {
	outputFormatFlags
	outputFlags
	identityFlags
	NATSURL        string             `name:"nats-url" help:"NATS servers to which the runs are published, so that Courier learns from them at once. By default they are only stored in --dir, from where courier import reads them." env:"COURIER_NATS_URL"`
	Model          string             `help:"Name of the model (default: name of the script)."`
	Dataset        string             `help:"Name of the dataset."`
	BatchSizes     []int              `help:"Batch sizes to measure." default:"16,32,64,128"`
	CPUs           []int              `name:"cpus" help:"Numbers of CPUs of each worker to measure." default:"1"`
	Workers        []int              `help:"Numbers of workers to measure, such as processes of torchrun; {workers} in the command." default:"1"`
	GPUs           []int              `name:"gpus" help:"Numbers of GPUs to measure; {gpus} in the command."`
	Jobs           []int              `help:"Numbers of concurrent jobs to measure. They start together." default:"1"`
	Epochs         int                `help:"Epochs of each run." required:""`
	Replications   int                `help:"Runs of each combination; the design adaptive needs fewer." default:"3"`
	SLO            []schemas.Duration `name:"slo" help:"SLOs that the advice is for, such as 10m,20m. Without one, everything is measured and nothing is advised."`
	TargetAccuracy float64            `help:"Accuracy, 0 to 1, that the advice must reach too; 0: none." default:"0"`
	Confidence     float64            `help:"Confidence of a promise." default:"0.95"`
	Design         string             `help:"Which combinations are measured. adaptive: the most informative one next, until no run is expected to improve the advice (default with --slo); full: all of them (default without); fractional: half of the combinations of the lowest and highest levels." enum:",adaptive,full,fractional" default:""`
	Budget         time.Duration      `help:"Time for all runs, such as 20m; no run starts that would end later. 0s: no limit." default:"0s"`
	Dir            string             `help:"Directory of the study. If it has an unfinished one with the same design, that continues." default:"courier-study" type:"path"`
	Seed           uint64             `help:"Seed of the random order." default:"1"`
	Command        []string           `arg:"" optional:"" passthrough:"" help:"Training command; {batch}, {cpus}, {workers}, {gpus}, {epochs} and {replication} are replaced."`
}

func (c *exploreCommand) Run(w *environment) error {
	command := trainingCommand(c.Command)
	if len(command) == 0 {
		return usagef("no command: courier explore --epochs N -- COMMAND --batch-size {batch}")
	}
	if !strings.Contains(strings.Join(command, " "), "{batch}") {
		return usagef("the command has no {batch}: write it where the batch size belongs, " +
			"for example --batch-size {batch}")
	}
	o := c.options(command)
	study, err := explore.Open(c.Dir, o)
	if err != nil {
		return err
	}
	job, err := c.job(w)
	if err != nil {
		return err
	}
	measurer := &explore.Runner{Dir: c.Dir, Options: o, Log: w.log, Job: job}
	closeAll, err := c.connect(w, measurer)
	if err != nil {
		return err
	}
	defer closeAll()
	defer func() { _ = os.RemoveAll(filepath.Join(c.Dir, "spool")) }() // runs.csv has all runs

	printf := func(format string, values ...any) {
		fmt.Fprintf(w.stderr, "courier: "+format+"\n", values...)
	}
	measurer.Messages = func(runID, text string) {
		printf("%s: %s", runID, strings.TrimPrefix(text, "courier: "))
	}
	result, err := study.Run(w.ctx, measurer.Block, func(p explore.Progress) {
		printf("%s", p.Text())
	})
	if errors.Is(err, explore.ErrInterrupted) {
		_, done := study.Blocks()
		printf("interrupted after %s: the same command continues the study in %s",
			schemas.FormatCount(uint64(done), "block"), c.Dir)
		return exitStatus(130)
	}
	if err != nil {
		return err
	}
	if c.NATSURL == "" {
		columns := ""
		if len(c.Workers) > 1 {
			columns = "--columns workers=workers "
		}
		runs := filepath.Join(c.Dir, "runs.csv")
		defer printf("Courier learns from these runs by: courier import %s%s", columns, runs)
	}
	return c.print(w, result, result.WriteText)
}

func (c *exploreCommand) options(command []string) explore.Options {
	o := explore.Options{
		Model:   c.Model,
		Dataset: c.Dataset,
		Command: command,
		Factors: explore.Factors{
			BatchSizes: c.BatchSizes, CPUs: c.CPUs, Workers: c.Workers, GPUs: c.GPUs,
			Jobs: c.Jobs,
		},
		Design:         c.Design,
		Epochs:         c.Epochs,
		Replications:   c.Replications,
		Seed:           c.Seed,
		Cores:          runtime.NumCPU(),
		Confidence:     c.Confidence,
		TargetAccuracy: c.TargetAccuracy,
		Budget:         c.Budget,
	}
	for _, slo := range c.SLO {
		o.SLOs = append(o.SLOs, time.Duration(slo))
	}
	o.Model = cmp.Or(o.Model, explore.ModelOf(command))
	return o
}

// connect connects to the servers of --nats-url, if there are any. The caller calls close.
func (c *exploreCommand) connect(w *environment, r *explore.Runner) (closeAll func(), err error) {
	if c.NATSURL == "" {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	b, err := bus.Connect(ctx, c.person(c.NATSURL, "courier-explore"), w.log, nil)
	if err != nil {
		return nil, fmt.Errorf("--nats-url %s: %w", c.NATSURL, err)
	}
	r.Connect = func(context.Context) (*bus.Bus, error) { return b, nil }
	return func() { closeBus(b) }, nil
}
