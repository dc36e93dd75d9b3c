package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"courier/receipt"
	"courier/report"
	"courier/schemas"
)

type userFlag struct {
	User string `group:"nats" help:"User who submits a job; with --nats-nkey it is the user of the nkey." env:"USER"`
}

type requestFlags struct {
	userFlag
	ID             string            `placeholder:"JOB" help:"ID of the job, 1 to 64 of a-z, 0-9, _ and - (default: a new one)." env:"COURIER_ID"`
	Model          string            `placeholder:"NAME" help:"Name of the model. Required, but run takes the name of the script by default." env:"COURIER_MODEL"`
	Dataset        string            `placeholder:"NAME" help:"Name of the dataset. A prediction uses only runs on the same dataset; jobs without a name share one unnamed dataset." env:"COURIER_DATASET"`
	CPUs           []int             `name:"cpus" placeholder:"N" help:"CPU counts to choose from. Required, but run takes 1 by default." env:"COURIER_CPUS"`
	Workers        []int             `placeholder:"N" help:"Numbers of workers to choose from, such as processes of torchrun or executors of Spark (default: 1). --cpus are those of each worker." env:"COURIER_WORKERS"`
	Loaders        []int             `placeholder:"N" help:"Numbers of data loaders of each worker to choose from, 0 for none; {loaders} in the command. A job that waits for its input changes to the next larger number, by --adapt of run." env:"COURIER_LOADERS"`
	Elastic        bool              `help:"The number of CPUs may change to any of --cpus while the job runs. A job with several workers keeps its CPUs." env:"COURIER_ELASTIC"`
	BatchSizes     []int             `placeholder:"N" help:"Batch sizes to choose from (default: 64,128,256,512). 0 alone: unknown, because the command sets it." env:"COURIER_BATCH_SIZES"`
	Epochs         int               `placeholder:"N" help:"Number of epochs. Required, unless --max-epochs or --target-accuracy lets Courier choose it." env:"COURIER_EPOCHS"`
	MaxEpochs      int               `placeholder:"N" help:"Maximum number of epochs if Courier chooses it (default: 100)." env:"COURIER_MAX_EPOCHS"`
	TargetAccuracy float64           `placeholder:"RATIO" help:"Accuracy to reach if Courier chooses the number of epochs, 0 to 1." env:"COURIER_TARGET_ACCURACY"`
	MayStopEarly   bool              `help:"The job may end by itself with fewer epochs, and counts as finished then. It is assumed if earlier jobs of the model did so." env:"COURIER_MAY_STOP_EARLY"`
	SLO            schemas.Duration  `name:"slo" help:"Maximum time from submission to the end of the last epoch, such as 10m, 6h30m or 2d. Without an SLO, a weighted score of time and accuracy decides." env:"COURIER_SLO"`
	Confidence     float64           `placeholder:"RATIO" help:"Wanted probability of meeting the SLO (default: 0.95)." env:"COURIER_CONFIDENCE"`
	Nodes          []string          `placeholder:"NODE" help:"Nodes to run on (default: the least loaded one with enough CPUs)." env:"COURIER_NODES"`
	NewNodes       bool              `help:"Accept nodes without a collector." env:"COURIER_NEW_NODES"`
	Labels         map[string]string `help:"Tags, such as team=vision." env:"COURIER_LABELS"`
}

func (f *requestFlags) request() schemas.JobRequest {
	return schemas.JobRequest{
		JobID:          f.ID,
		Model:          f.Model,
		Dataset:        f.Dataset,
		CPUs:           f.CPUs,
		Workers:        f.Workers,
		Loaders:        f.Loaders,
		Elastic:        f.Elastic,
		BatchSizes:     f.BatchSizes,
		Epochs:         f.Epochs,
		MaxEpochs:      f.MaxEpochs,
		TargetAccuracy: f.TargetAccuracy,
		MayStopEarly:   f.MayStopEarly,
		SLO:            f.SLO,
		Confidence:     f.Confidence,
		Nodes:          f.Nodes,
		NewNodes:       f.NewNodes,
		User:           f.User,
		Labels:         f.Labels,
	}
}

// requestTimeout bounds how long an interactive command waits for an answer.
const requestTimeout = 5 * time.Second

// askFlags are the flags of commands that print the reply to one request.
type askFlags struct {
	natsFlags
	outputFlags
}

// ask validates and sends a request, and prints the reply, as text by a function.
func ask[T any](
	w *environment, f askFlags, q schemas.Request, timeout time.Duration, text func(io.Writer, *T),
) error {
	var reply T
	if err := f.send(w, q.Subject(), q, timeout, &reply); err != nil {
		return err
	}
	return f.print(w, &reply, func(out io.Writer) { text(out, &reply) })
}

// send validates and sends a request, and decodes the reply.
func (f askFlags) send(w *environment, subject string, q schemas.Request, timeout time.Duration, reply any) error {
	if err := q.Validate(); err != nil {
		return err
	}
	b, err := f.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	return b.Request(ctx, subject, q, reply)
}

type submitCommand struct {
	askFlags
	requestFlags
}

func (c *submitCommand) Run(w *environment) error {
	q := c.request()
	q.User = c.asker(q.User)
	return ask(w, c.askFlags, &q, requestTimeout, report.Advice)
}

type predictCommand struct {
	askFlags
	requestFlags
	Explain bool `help:"Also print the evidence for the figures of the chosen alternative."`
	All     bool `help:"With --explain: the evidence for all alternatives."`
}

// Run returns notMet if no alternative meets the SLO.
func (c *predictCommand) Run(w *environment) error {
	if c.All && !c.Explain {
		return usagef("--all: want --explain as well")
	}
	q := c.request()
	q.User = c.asker(q.User)
	var a schemas.Advice
	if err := c.send(w, schemas.SubjectJobPredict, &q, requestTimeout, &a); err != nil {
		return err
	}
	err := c.print(w, &a, func(out io.Writer) {
		if c.Explain {
			report.Explain(out, &a, c.All)
		} else {
			report.Advice(out, &a)
		}
	})
	if err == nil && a.Decision == schemas.BestEffort {
		return notMet{errors.New("no alternative meets the SLO")}
	}
	return err
}

type statusCommand struct {
	natsFlags
	outputFlags
	ID string `arg:"" name:"job" help:"ID of the job."`
}

type jobState struct {
	schemas.JobStatus
	ETA *receipt.ETA `json:"eta,omitempty"` // nil unless the job runs
}

// Run returns notMet for a job that missed its SLO.
func (c *statusCommand) Run(w *environment) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	var s jobState
	q := &schemas.JobStatusRequest{JobID: c.ID}
	if err := b.Request(ctx, schemas.SubjectJobStatus, q, &s.JobStatus); err != nil {
		return err
	}
	ends := ""
	if s.State == schemas.StateRunning {
		if s.ETA, err = receipt.ReadETA(ctx, b, &s.JobStatus); err != nil {
			return err
		}
		ends = s.ETA.Text(time.Now())
	}
	err = c.print(w, &s, func(out io.Writer) { report.Job(out, &s.JobStatus, ends) })
	if err == nil && s.MetSLO != nil && !*s.MetSLO {
		return notMet{fmt.Errorf("job %s missed its SLO", c.ID)}
	}
	return err
}

type cancelCommand struct {
	askFlags
	ID     string `arg:"" name:"job" help:"ID of the job."`
	Reason string `help:"Reason to record."`
}

func (c *cancelCommand) Run(w *environment) error {
	q := &schemas.JobCancelRequest{JobID: c.ID, Reason: c.Reason}
	return ask(w, c.askFlags, q, requestTimeout, func(out io.Writer, s *schemas.JobStatus) {
		report.Job(out, s, "")
	})
}

// jobSelection has the fields of a schemas.JobListRequest.
type jobSelection struct {
	State   schemas.StateSelection `placeholder:"STATE" help:"Only jobs in these states, separated by commas; open: submitted, queued or running; ended: all others."`
	Search  string                 `help:"Only jobs whose ID, model, dataset, user or a node contains this text."`
	User    string                 `help:"Only jobs of this user."`
	Model   string                 `help:"Only jobs of this model."`
	Dataset string                 `help:"Only jobs of this dataset."`
	Node    string                 `help:"Only jobs of this node."`
	Label   string                 `help:"Only jobs with this label, name or name=value."`
	Since   time.Time              `help:"Only jobs that have not ended before this instant, such as 2026-11-28T08:00:00Z, or before a duration before now, such as 7d."`
	Until   time.Time              `help:"Only jobs that began before this instant."`
	AtRisk  bool                   `help:"Only jobs with an active warning."`
	Missed  bool                   `help:"Only jobs that missed their SLO."`
	Brief   bool                   `help:"List running jobs without their present predictions, which is faster."`
	Sort    string                 `help:"Order by probability, deadline, started, ended, id, model, user, node or state; - in front, as in -ended, for descending order; default: newest first."`
	Limit   int                    `help:"Maximum number of jobs, 1 to 1000." default:"20"`
	After   string                 `help:"Only jobs after this one in the list; continues a previous page."`
}

type jobsCommand struct {
	askFlags
	jobSelection
}

func (c *jobsCommand) Run(w *environment) error {
	if c.Limit == 0 { // which means the default in a request
		return schemas.Invalid("limit", "0 is not between 1 and %d", schemas.MaxPage)
	}
	return ask(w, c.askFlags, (*schemas.JobListRequest)(&c.jobSelection), requestTimeout, report.Jobs)
}

// scoreSelection has the fields of a schemas.ScoreRequest.
type scoreSelection struct {
	Since time.Time `help:"Only jobs that ended after this instant, such as 2026-11-28T08:00:00Z, or after a duration before now, such as 7d."`
	Until time.Time `help:"Only jobs that ended before this instant."`
	User  string    `help:"Only jobs of this user."`
	Model string    `help:"Only jobs of this model."`
}

type scoreCommand struct {
	askFlags
	scoreSelection
}

func (c *scoreCommand) Run(w *environment) error {
	return ask(w, c.askFlags, (*schemas.ScoreRequest)(&c.scoreSelection), requestTimeout, report.Score)
}
