package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"courier/policy"
	"courier/services"
	"courier/simulate"
	"courier/simulate/elastic"
	"courier/simulate/figures"
)

type simulateCommand struct {
	Elastic  simulateElastic  `cmd:"" help:"Play a trace of elastic jobs with deadlines, and compare policies by the ratio of kept deadlines."`
	Figures  simulateFigures  `cmd:"" help:"Reproduce the figures of a published system: CE-scaling, FlowCon or NEARCHUS."`
	Promises simulatePromises `cmd:"" help:"Compare rules that promise SLOs on the same submissions in a simulated cluster."`
}

type simulateFigures struct {
	outputFlags
	System string `arg:"" help:"ce: CE-scaling plans the resources of the stages of a tuning; flowcon: FlowCon divides CPU among trainings by the fall of their losses; nearchus: NEARCHUS resizes trainings by their bottlenecks." enum:"ce,flowcon,nearchus"`
	Seeds  int    `help:"Number of simulations of each variant of nearchus." default:"20" placeholder:"N"`
}

func (c *simulateFigures) Run(w *environment) error {
	if c.Seeds < 1 || c.Seeds > 1000 {
		return usagef("--seeds is %d, want 1 to 1000", c.Seeds)
	}
	bar := &services.StepBar{Out: w.stderr}
	f, err := c.reproduce(w.ctx, bar)
	bar.End()
	if err != nil {
		return err
	}
	return c.print(w, f, f.WriteText)
}

// reproduce computes the figures. Only those of nearchus take long enough for a progress bar.
func (c *simulateFigures) reproduce(ctx context.Context, bar *services.StepBar) (*figures.Comparisons, error) {
	switch c.System {
	case "ce":
		return figures.CEScaling()
	case "flowcon":
		return figures.FlowCon(), nil
	}
	return figures.NEARCHUS(ctx, c.Seeds, func(done, total int) {
		bar.Draw("simulations", uint64(done), uint64(total))
	})
}

type simulateElastic struct {
	outputFlags
	Trace            string        `help:"CSV file with one job per row and the columns job_id, submission_time, deadline, num_iteration, model_name and batch_size." required:"" type:"path" placeholder:"FILE"`
	Throughputs      string        `help:"Directory with a table MODEL.csv per model: iterations per second by batch size and number of GPUs." required:"" type:"path" placeholder:"DIR"`
	Jobs             int           `help:"Simulate only the first jobs; 0: all." default:"0" placeholder:"N"`
	GPUs             int           `name:"gpus" help:"Number of GPUs of the cluster." required:"" placeholder:"N"`
	Slot             time.Duration `help:"Minimum time between two moments, at which jobs start or change their number of GPUs." default:"60s"`
	Policy           []string      `help:"Policies to compare, separated by commas: ${elastic_policies}." default:"deadline" sep:"none" placeholder:"NAME,..."`
	Charge           string        `help:"Jobs that pause at a moment: all, rounds (unchanged jobs pause for less), changed (only changed jobs), none." enum:"all,rounds,changed,none" default:"all"`
	AllowBatchChange bool          `help:"Let policies choose another profiled batch size for the same number of samples."`
	Schedule         string        `help:"Write the schedule of the first policy to this file: job, start, end, GPUs and batch size." type:"path" placeholder:"FILE"`
}

func (c *simulateElastic) Run(w *environment) error {
	c.Policy = splitNames(c.Policy)
	if err := elastic.CheckPolicies(c.Policy); err != nil {
		return usagef("--policy: %w", err)
	}
	if c.Jobs < 0 {
		return usagef("--jobs is %d, want a number of jobs, or 0 for all", c.Jobs)
	}
	rates, err := elastic.ReadThroughputs(c.Throughputs)
	if err != nil {
		return err
	}
	trace, err := elastic.ReadTraceFile(c.Trace)
	if err != nil {
		return err
	}
	if c.Jobs > 0 {
		trace = trace[:min(c.Jobs, len(trace))]
	}

	var schedule *os.File
	if c.Schedule != "" { // before the simulation, which takes long
		if schedule, err = os.Create(c.Schedule); err != nil {
			return err
		}
		defer schedule.Close()
	}
	bar := &services.StepBar{Out: w.stderr}
	result, err := elastic.Compare(w.ctx, trace, rates, c.Policy, elastic.Options{
		GPUs:             c.GPUs,
		Slot:             c.Slot,
		Charge:           policy.Charge(c.Charge),
		AllowBatchChange: c.AllowBatchChange,
		Progress: func(name string, submitted int) {
			bar.Draw(name, uint64(submitted), uint64(len(trace)))
		},
	})
	bar.End()
	if err != nil {
		return err
	}
	if schedule != nil {
		if err := errors.Join(result.Policies[0].WriteSchedule(schedule), schedule.Close()); err != nil {
			return err
		}
	}
	return c.print(w, result, result.WriteText)
}

// splitNames splits lists of names at commas. An empty name remains, so that it is refused.
func splitNames(lists []string) (names []string) {
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

type simulatePromises struct {
	outputFlags
	Seed        uint64   `help:"Seed of arrivals, SLOs, noise, the warm-up and the fits." default:"1"`
	Submissions int      `help:"Number of submitted jobs." default:"1000"`
	Confidence  float64  `help:"Confidence that every job requests, between 0 and 1." default:"0.95"`
	Rules       []string `help:"Rules to compare: ${rules}; also informed, which knows the true probabilities." default:"${rules}"`
	Refit       int      `help:"Fit the regressors again after this many finished jobs; 0: only once, on the warm-up." default:"0"`
}

func (c *simulatePromises) Run(w *environment) error {
	o := simulate.RuleComparisonOptions{
		Submissions: c.Submissions, Confidence: c.Confidence, Seed: c.Seed, Refit: c.Refit, Rules: c.Rules,
	}
	if err := o.Validate(); err != nil {
		return usageError{err}
	}
	bar := &services.StepBar{Out: w.stderr}
	o.Progress = func(rule string, done int) { bar.Draw(rule, uint64(done), uint64(c.Submissions)) }
	result, err := simulate.Compare(w.ctx, simulate.DefaultWorld(), o)
	bar.End()
	if err != nil {
		return err
	}
	return c.print(w, result, result.WriteText)
}
