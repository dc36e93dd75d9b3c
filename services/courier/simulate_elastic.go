package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/policy"
	"courier/services"
	"courier/simulate/elastic"
)

type simulateElastic struct {
	outputFlags
	Trace            string        `help:"CSV file with one job per row and the columns job_id, submission_time, deadline, num_iteration, model_name and batch_size." required:"" type:"path" placeholder:"FILE"`
	Throughputs      string        `help:"Directory with a table MODEL.csv per model: iterations per second by batch size and number of GPUs." required:"" type:"path" placeholder:"DIR"`
	Jobs             int           `help:"Simulate only the first jobs; 0: all." default:"0" placeholder:"N"`
	GPUs             int           `name:"gpus" help:"Number of GPUs of the cluster." required:"" placeholder:"N"`
	Slot             time.Duration `help:"Minimum time between two moments, at which jobs start or change their number of GPUs." default:"60s"`
	Policy           []string      `help:"Policies to compare, separated by commas: ${elastic_policies}." default:"deadline" sep:"none" placeholder:"NAME,..."`
	Charge           string        `help:"Jobs that pause at a moment: all, rounds (unchanged jobs pause for less), changed (only changed jobs), none." enum:"all,rounds,changed,none" default:"all"`
	RateError        float64       `help:"Standard deviation of log(known / true rate), 0 to 1; 0: the known rates are exact." default:"0"`
	Predicted        bool          `help:"Hide the rates: policies use predictions from the epochs of earlier jobs."`
	AllowBatchChange bool          `help:"Let policies choose another profiled batch size for the same number of samples."`
	Seed             uint64        `help:"Seed of the errors of the rates." default:"1"`
	Schedule         string        `help:"Write the schedule of the first policy to this file: job, start, end, GPUs and batch size." type:"path" placeholder:"FILE"`
}

// progressStep is the number of submitted jobs between two drawings of the progress bar.
const progressStep = 50

// Help returns the examples of courier simulate elastic.
func (c *simulateElastic) Help() string {
	return `Example:
  courier simulate elastic --trace cluster01.csv --throughputs throughputs_A100 --gpus 512 --policy deadline,edf
  courier simulate elastic --trace jobs.csv --throughputs tables --gpus 64 --schedule out.csv`
}

func (c *simulateElastic) Run(w *environment) error {
	c.Policy = splitNames(c.Policy)
	if err := elastic.CheckPolicies(c.Policy); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if c.Jobs < 0 {
		return fmt.Errorf("--jobs is %d, want a number of jobs, or 0 for all", c.Jobs)
	}
	if err := checkOut(c.Schedule); err != nil {
		return err
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
	return c.compare(w, trace, rates)
}

// compare plays the trace with each policy, and writes the results.
func (c *simulateElastic) compare(w *environment, trace []elastic.TraceJob, rates elastic.Throughputs) error {
	bar := services.NewProgressBar(w.stderr, len(c.Policy)*len(trace))
	result, err := elastic.Compare(w.ctx, trace, rates, c.Policy, c.options(bar, len(trace)))
	if err != nil {
		return err
	}
	if bar.Terminal {
		bar.Draw(bar.Total, "done")
		bar.End()
	}
	if c.Schedule != "" {
		if err := writeOut(w, c.Schedule, result.Policies[0].WriteSchedule); err != nil {
			return err
		}
	}
	return c.print(w.stdout, result, result.WriteText)
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

func (c *simulateElastic) options(bar *services.ProgressBar, jobs int) elastic.Options {
	return elastic.Options{
		Cluster:          elastic.NewCluster(c.GPUs, c.Slot, policy.Charge(c.Charge)),
		AllowBatchChange: c.AllowBatchChange,
		RateError:        c.RateError,
		Predicted:        c.Predicted,
		Seed:             c.Seed,
		Progress: func(name string, submitted int) {
			if bar.Terminal && submitted%progressStep == 0 {
				bar.Draw(slices.Index(c.Policy, name)*jobs+submitted, name)
			}
		},
	}
}
