package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/schemas"
)

// requestFlags are the fields of a job request.
type requestFlags struct {
	ID              string            `help:"Name of the job, [a-z0-9_-]{1,64}; made if absent." env:"COURIER_ID"`
	Model           string            `help:"Name of what is trained." required:"" env:"COURIER_MODEL"`
	Dataset         string            `help:"Name of the training data. Only runs on it are evidence; none is a dataset of its own." env:"COURIER_DATASET"`
	CPUs            []int             `name:"cpus" help:"CPU counts to choose from." required:"" env:"COURIER_CPUS"`
	BatchSizes      []int             `help:"Batch sizes to choose from (default: 64,128,256,512)." env:"COURIER_BATCH_SIZES"`
	Epochs          int               `help:"Passes over the data; absent: chosen, see --max-epochs and --target-accuracy." env:"COURIER_EPOCHS"`
	MaxEpochs       int               `help:"Most passes over the data where they are chosen (default: 100)." env:"COURIER_MAX_EPOCHS"`
	TargetAccuracy  float64           `help:"Enough, where epochs are chosen: an accuracy from 0 to 1." env:"COURIER_TARGET_ACCURACY"`
	SLO             schemas.Duration  `name:"slo" help:"Time from submission to the end of the last epoch, such as 10m, 6h30m or 2d; without it a weighted score decides." env:"COURIER_SLO"`
	Confidence      float64           `help:"Wanted probability of meeting the SLO (default: 0.95)." env:"COURIER_CONFIDENCE"`
	Promise         string            `help:"What the confidence is of: each promise, or the mean of all that ask for the same; absent: as the advisor is set." enum:",each,mean" default:"" env:"COURIER_PROMISE"`
	Nodes           []string          `help:"Nodes it runs on; absent: the least loaded that fits." env:"COURIER_NODES"`
	TrainingSamples uint64            `help:"Samples in one epoch." env:"COURIER_TRAINING_SAMPLES"`
	User            string            `help:"Who asks." env:"USER"`
	Labels          map[string]string `help:"Tags, such as team=vision." env:"COURIER_LABELS"`
}

func (f *requestFlags) request() schemas.JobRequest {
	return schemas.JobRequest{JobID: f.ID, Model: f.Model, Dataset: f.Dataset, CPUs: f.CPUs, BatchSizes: f.BatchSizes, Epochs: f.Epochs, MaxEpochs: f.MaxEpochs, TargetAccuracy: f.TargetAccuracy,
		SLO: f.SLO, Confidence: f.Confidence, Promise: schemas.Promise(f.Promise), Nodes: f.Nodes, TrainingSamples: f.TrainingSamples, User: f.User, Labels: f.Labels}
}

// requestTimeout is how long a tool waits for an answer.
const requestTimeout = 5 * time.Second

// ask sends a request and prints the reply as JSON, or by text.
func ask[T any](w *world, n natsFlags, o outputFlags, subject string, request any, text func(io.Writer, *T) error) error {
	b, err := n.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	return askBus(w, b, o, subject, request, text)
}

func askBus[T any](w *world, b *bus.Bus, o outputFlags, subject string, request any, text func(io.Writer, *T) error) error {
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	var reply T
	if err := b.Request(ctx, subject, request, &reply); err != nil {
		return err
	}
	return o.print(w.stdout, &reply, func(out io.Writer) error { return text(out, &reply) })
}

type submitCommand struct {
	natsFlags
	outputFlags
	requestFlags
}

func (c *submitCommand) Run(w *world) error {
	q := c.request()
	q.User = c.asker(q.User)
	if err := q.Validate(); err != nil {
		return err
	}
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobSubmit, &q, printAdvice)
}

type predictCommand struct {
	natsFlags
	outputFlags
	requestFlags
	Explain bool `help:"Print what each figure rests on, too."`
}

func (c *predictCommand) Run(w *world) error {
	q := c.request()
	q.User = c.asker(q.User)
	if err := q.Validate(); err != nil {
		return err
	}
	text := printAdvice
	if c.Explain {
		text = explainAdvice
	}
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobPredict, &q, text)
}

type statusCommand struct {
	natsFlags
	outputFlags
	ID string `arg:"" help:"Of the job."`
}

func (c *statusCommand) Run(w *world) error {
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: c.ID}, printStatus)
}

type cancelCommand struct {
	natsFlags
	outputFlags
	ID     string `arg:"" help:"Of the job."`
	Reason string `help:"Why, for the record."`
}

func (c *cancelCommand) Run(w *world) error {
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobCancel, &schemas.JobCancelRequest{JobID: c.ID, Reason: c.Reason}, printStatus)
}

type jobsCommand struct {
	natsFlags
	outputFlags
	State string `help:"Only jobs in this state."`
	Limit int    `help:"Most jobs to list." default:"20"`
	After string `help:"Go on after this job."`
}

func (c *jobsCommand) Run(w *world) error {
	return ask(w, c.natsFlags, c.outputFlags, schemas.SubjectJobList, &schemas.JobListRequest{State: schemas.State(c.State), Limit: c.Limit, After: c.After}, printJobs)
}

// duration prints seconds that may be unknown.
func duration(v *float64) string {
	if v == nil {
		return "-"
	}
	return schemas.FormatSeconds(*v)
}

// chance prints a probability that may be unknown.
func chance(v *float64) string {
	if v == nil {
		return "-"
	}
	return schemas.FormatProbability(*v)
}

// figure prints a number that may be unknown.
func figure(v *float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

// printForeign prints what work unknown to Courier takes of the nodes, where that is known and
// not nothing.
func printForeign(out io.Writer, l *schemas.Load) {
	if cpu := l.ForeignCPURatio; cpu.Value > 0 {
		fmt.Fprintf(out, "          other work takes %.0f %% of the processors\n", 100*cpu.Value)
	}
	if r := l.ForeignIOWaitRatio; r.Value > 0 {
		fmt.Fprintf(out, "          %.0f %% of them wait for storage, for other work\n", 100*r.Value)
	}
}

// company says how many jobs run at once, the asked one included.
func company(jobs float64) string {
	if jobs <= 1 {
		return "no other job"
	}
	return fmt.Sprintf("%.3g jobs at once, this one included", jobs)
}

func printAdvice(out io.Writer, a *schemas.Advice) error {
	if a.JobID != "" {
		fmt.Fprintf(out, "job       %s\n", a.JobID)
	}
	fmt.Fprintf(out, "decision  %s\nadvice    %s\n", a.Decision, a.Message)
	if len(a.Nodes) > 0 {
		fmt.Fprintf(out, "nodes     %s, %s\n", strings.Join(a.Nodes, ", "), company(a.Load.ConcurrentJobs))
		printForeign(out, &a.Load)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nbatch\tcpus\tepochs\ttime\tbound\taccuracy\tprobability\t")
	for i := range a.Alternatives {
		x := &a.Alternatives[i]
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", x.BatchSize, x.CPUs, x.Epochs,
			duration(x.PredictedSeconds), duration(x.UpperBoundSeconds), figure(x.PredictedAccuracy, "%.4f"), chance(x.Probability), x.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printAround(out, a)
	return nil
}

// printAround prints what the job does to others, and what else could be run.
func printAround(out io.Writer, a *schemas.Advice) {
	for i := range a.Effects {
		e := &a.Effects[i]
		fmt.Fprintf(out, "\neffect    %s: %s left become %s", e.JobID, schemas.FormatSeconds(e.BeforeSeconds), schemas.FormatSeconds(e.AfterSeconds))
		if e.BreaksSLO {
			fmt.Fprintf(out, ", and its SLO is kept with probability %s instead of %s", chance(e.AfterProbability), chance(e.BeforeProbability))
		}
	}
	if len(a.Effects) > 0 {
		fmt.Fprintln(out)
	}
	for i := range a.Menu {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "or        %s\n", a.Menu[i].Text())
	}
}

func printStatus(out io.Writer, s *schemas.JobStatus) error {
	return printJobs(out, &schemas.JobList{Jobs: []schemas.JobStatus{*s}})
}

func printJobs(out io.Writer, l *schemas.JobList) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "job\tstate\tmodel\tbatch\tcpus\tepochs\taccuracy\tdeadline\tpredicted end\tmet SLO")
	for i := range l.Jobs {
		j := &l.Jobs[i]
		met := "-"
		if j.MetSLO != nil {
			met = map[bool]string{true: "yes", false: "no"}[*j.MetSLO]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d/%d\t%s\t%s\t%s\t%s\n", j.JobID, j.State, trainedName(j.Model, j.Dataset), j.BatchSize, j.CPUs, j.EpochsDone, j.Epochs,
			figure(j.Accuracy, "%.4f"), clock(j.DeadlineAt), clock(j.PredictedEndAt), met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l.Next != "" {
		fmt.Fprintf(out, "more: courier jobs --after %s\n", l.Next)
	}
	return nil
}

// trainedName names a model and its dataset, if it has one, as regressors do.
func trainedName(model, dataset string) string {
	if dataset == "" {
		return model
	}
	return schemas.ModelLevel(model, dataset)
}

// clock prints an instant with its zone.
func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
