package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"courier/bus"
	"courier/importer"
	"courier/report"
	"courier/schemas"
	"courier/services"
)

type importCommand struct {
	natsFlags
	outputFlags
	Paths  []string `arg:"" optional:"" help:"Files to import."`
	Sacct  string   `help:"Read the jobs of Slurm's accounting since this time, such as now-90days." placeholder:"TIME"`
	DryRun bool     `help:"Only report what would be imported."`
	Train  bool     `help:"Fit the regressors on the runs at once." default:"true" negatable:""`

	Columns         map[string]string `help:"Names of fields in the source that are not recognized, such as batch_size=bs,cpus=workers." placeholder:"FIELD=NAME" mapsep:","`
	Where           map[string]string `help:"Only rows whose column has this value, such as time_suspect=0; may be repeated." mapsep:"none" placeholder:"COLUMN=VALUE"`
	Model           string            `help:"Model of runs whose source names none."`
	Dataset         string            `help:"Dataset of runs whose source names none."`
	BatchSize       uint32            `help:"Batch size of runs whose source has none; default: unknown." placeholder:"N"`
	CPUs            uint32            `name:"cpus" help:"Number of processes of runs whose source has none." placeholder:"N"`
	Epochs          uint32            `help:"Number of epochs of runs whose source has none. A finished run with fewer epochs is refused." placeholder:"N"`
	TrainingSamples uint64            `help:"Number of samples in one epoch of runs whose source has none." placeholder:"N"`
	Node            string            `help:"Node of runs whose source names none (default: the name of the source, so that runs of two sources are not neighbours)."`
	NodeCores       uint32            `help:"Number of logical processors of the node of such runs." placeholder:"N"`
	Since           string            `help:"Start of the first run, for sources without timestamps. Runs follow one another from there, with concurrent_jobs equal neighbours." placeholder:"DATE"`
	TimeZone        string            `help:"Time zone of timestamps without one, such as Europe/Amsterdam. Without it they are refused."`
}

func (c *importCommand) Run(w *environment) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	found, err := c.read(w, o)
	if err != nil {
		return err
	}
	s := importer.NewSummary(found)
	s.DryRun = c.DryRun
	if err := c.publish(w, found.Runs, s); err != nil {
		return fmt.Errorf("%w; %d of %d runs are in the log: repeat the command, no event is"+
			" published twice", err, s.Imported+s.Existing, len(found.Runs))
	}
	if err := c.print(w, s, s.WriteText); err != nil {
		return err
	}
	if s.Imported+s.Existing == 0 {
		return errors.New("nothing was imported")
	}
	return nil
}

func (c *importCommand) options() (o importer.Options, err error) {
	o = importer.Options{
		Columns: c.Columns,
		Where:   c.Where,
		Now:     time.Now(),
		Defaults: map[string]string{
			importer.FieldModel:   c.Model,
			importer.FieldDataset: c.Dataset,
			importer.FieldNodes:   c.Node,
		},
	}
	c.setNumbers(o.Defaults)
	if err := importer.CheckColumns(c.Columns); err != nil {
		return o, usagef("--columns: %w", err)
	}
	if c.TimeZone != "" {
		if o.Zone, err = time.LoadLocation(c.TimeZone); err != nil {
			return o, usagef("--time-zone: %w; want a name such as UTC or Europe/Amsterdam", err)
		}
	}
	if c.Since != "" {
		if o.Since, err = importer.Instant(c.Since, cmp.Or(o.Zone, time.UTC)); err != nil {
			return o, usagef("--since: %w", err)
		}
	}
	return o, nil
}

func (c *importCommand) setNumbers(defaults map[string]string) {
	for field, n := range map[string]uint64{
		importer.FieldBatchSize:       uint64(c.BatchSize),
		importer.FieldCPUs:            uint64(c.CPUs),
		importer.FieldEpochs:          uint64(c.Epochs),
		importer.FieldTrainingSamples: c.TrainingSamples,
		importer.FieldNodeCores:       uint64(c.NodeCores),
	} {
		if n > 0 {
			defaults[field] = strconv.FormatUint(n, 10)
		}
	}
}

func (c *importCommand) read(w *environment, o importer.Options) (importer.ReadResult, error) {
	if len(c.Paths) == 0 && c.Sacct == "" {
		return importer.ReadResult{}, usagef("no source: name files, or give --sacct")
	}
	r := importer.New(o)
	if c.Sacct != "" {
		if err := r.Sacct(w.ctx, c.Sacct); err != nil {
			return importer.ReadResult{}, err
		}
	}
	for _, path := range c.Paths {
		if err := r.Path(path); err != nil {
			return importer.ReadResult{}, err
		}
	}
	return r.Finish(), nil
}

// trainTimeout bounds the wait for fits.
const trainTimeout = 5 * time.Minute

// publish publishes the runs that the log does not have yet, and fits the regressors.
func (c *importCommand) publish(w *environment, runs []*importer.PastRun, s *importer.Summary) error {
	b, err := c.connect(w)
	if err != nil {
		if !c.DryRun {
			return err
		}
		fmt.Fprintln(w.stderr, "cannot compare with the log:", err)
	} else {
		defer closeBus(b)
	}
	p, err := importer.NewPublisher(w.ctx, b)
	if err != nil {
		return err
	}
	defer func() { s.Published = p.Published }() // also of a part of the runs
	if c.DryRun {
		return p.Publish(w.ctx, runs, true, func(int) {})
	}

	bar := &services.StepBar{Out: w.stderr}
	defer bar.End()
	err = p.Publish(w.ctx, runs, false, func(n int) { bar.Draw("runs", uint64(n), uint64(len(runs))) })
	if err != nil {
		return err
	}
	if c.Train && p.Imported > 0 {
		s.Trained, err = trainImported(w.ctx, b)
	}
	return err
}

// trainImported fits the regressors and returns the outcomes as text. Without a trainer the runs
// stay in the log for a later one.
func trainImported(ctx context.Context, b *bus.Bus) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, trainTimeout)
	defer cancel()
	var reply schemas.TrainReply
	err := b.Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{}, &reply)
	if errors.Is(err, schemas.ErrUnavailable) {
		return []string{"no trainer is running: the runs are used when one starts"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	var lines strings.Builder
	report.Trained(&lines, &reply)
	return strings.Split(strings.TrimSpace(lines.String()), "\n"), nil
}
