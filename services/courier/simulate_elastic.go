package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"courier/policy"
	"courier/schemas"
	"courier/services"
	"courier/simulate/elastic"
)

type simulateElastic struct {
	outputFlags
	Trace            string        `help:"Trace of jobs: a CSV file, or JSON for philly." required:"" type:"path" placeholder:"FILE"`
	Throughputs      string        `help:"Directory with a table MODEL.csv per model: iterations per second by batch size and number of GPUs." required:"" type:"path" placeholder:"DIR"`
	Format           string        `help:"Format of the trace. deadlines: CSV with models, iterations and deadlines. recorded (CSV with GPUs and durations), helios (cluster_log.csv), alibaba (pod list of 2023), philly (cluster_job_log): models, iterations and deadlines are derived." enum:"deadlines,recorded,helios,alibaba,philly" default:"deadlines"`
	Column           []string      `help:"Column of the trace that has another name, as NAME=COLUMN; may be repeated. Names: job_id, submission_time, and deadline, num_iteration, model_name, batch_size, or num_gpu, duration, start_time, end_time." placeholder:"NAME=COLUMN"`
	Jobs             int           `help:"Simulate only the first jobs; 0: all." default:"0" placeholder:"N"`
	GPUs             int           `name:"gpus" help:"Number of GPUs of the cluster." required:"" placeholder:"N"`
	Slot             time.Duration `help:"Minimum time between two moments, at which jobs start or change their number of GPUs." default:"60s"`
	Policy           []string      `help:"Policies to compare, separated by commas: ${elastic_policies}." default:"deadline" sep:"none" placeholder:"NAME,..."`
	Charge           string        `help:"Jobs that pause at a moment: all, rounds (unchanged jobs pause for less), changed (only changed jobs), none." enum:"all,rounds,changed,none" default:"all"`
	RateError        float64       `help:"Standard deviation of log(known / true rate), 0 to 1; 0: the known rates are exact." default:"0"`
	Predicted        bool          `help:"Hide the rates: policies use predictions from the epochs of earlier jobs."`
	AllowBatchChange bool          `help:"Let policies choose another profiled batch size for the same number of samples."`
	Seed             uint64        `help:"Seed of the errors of the rates, and of what is derived." default:"1"`
	WriteTrace       string        `help:"Write the simulated jobs to this file, as a trace of the format deadlines: with what is derived, and without those that --jobs leaves out." type:"path" placeholder:"FILE"`
	Schedule         string        `help:"Write the schedule of the first policy to this file: job, start, end, GPUs and batch size." type:"path" placeholder:"FILE"`
}

// progressStep is the number of submitted jobs between two drawings of the progress bar.
const progressStep = 50

// Help returns the examples of courier simulate elastic.
func (c *simulateElastic) Help() string {
	return `Example:
  courier simulate elastic --trace cluster01.csv --throughputs throughputs_A100 --gpus 512 --policy deadline,edf
  courier simulate elastic --trace jobs.csv --column job_id=jobid --throughputs tables --gpus 64 --schedule out.csv
  courier simulate elastic --trace cluster_job_log --format philly --jobs 2000 --throughputs tables --gpus 256 --write-trace derived.csv`
}

func (c *simulateElastic) Run(w *environment) error {
	c.Policy = splitNames(c.Policy)
	if err := elastic.CheckPolicies(c.Policy); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	for _, path := range []string{c.WriteTrace, c.Schedule} {
		if err := checkOut(path); err != nil {
			return err
		}
	}
	rates, err := elastic.ReadThroughputs(c.Throughputs)
	if err != nil {
		return err
	}
	trace, err := c.readTrace(w, rates)
	if err != nil {
		return err
	}

	if c.WriteTrace != "" {
		write := func(out io.Writer) error { return elastic.WriteTrace(out, trace) }
		if err := writeOut(w, c.WriteTrace, write); err != nil {
			return err
		}
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

// readTrace reads the trace, and tells what was derived.
func (c *simulateElastic) readTrace(
	w *environment, rates elastic.Throughputs,
) ([]elastic.TraceJob, error) {
	if c.Jobs < 0 {
		return nil, fmt.Errorf("--jobs is %d, want a number of jobs, or 0 for all", c.Jobs)
	}
	format := elastic.Format(c.Format)
	if format == elastic.FormatPhilly && len(c.Column) > 0 {
		return nil, errors.New("--column: the format philly is JSON and has no columns")
	}
	columns := format.Columns()
	if err := columns.Set(c.Column...); err != nil {
		return nil, err
	}
	if format == elastic.FormatDeadlines {
		jobs, err := elastic.ReadTraceFile(c.Trace, columns)
		return first(jobs, c.Jobs), err
	}
	recorded, skipped, err := elastic.ReadRecordedFile(c.Trace, format, columns)
	if err != nil {
		return nil, err
	}
	recorded = first(recorded, c.Jobs)
	jobs, err := elastic.Derive(recorded, rates, c.Seed)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w.stderr, "%s: models, iterations and deadlines are derived (seed %d).",
		schemas.FormatCount(uint64(len(jobs)), "job"), c.Seed)
	if skipped > 0 {
		fmt.Fprintf(w.stderr, " Left out: %s without a submission, a GPU, a begin or an end.",
			schemas.FormatCount(uint64(skipped), "job"))
	}
	fmt.Fprintln(w.stderr)
	return jobs, nil
}

// first returns the first elements; all if the number is 0.
func first[T any](all []T, number int) []T {
	if number == 0 {
		return all
	}
	return all[:min(number, len(all))]
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
