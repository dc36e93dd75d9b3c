package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"courier/regress"
	"courier/regress/table"
	"courier/report"
	"courier/services"
)

type regressorFit struct {
	examplesFlags
	outputFlags
	Target     string         `help:"Column to predict; rows without a value are dropped." required:"" placeholder:"COLUMN"`
	Features   []string       `help:"Columns to predict from; text is a category." required:"" placeholder:"COLUMN"`
	Group      []string       `help:"Columns that identify a configuration; all rows of a configuration are in the same fold (default: the features)." placeholder:"COLUMN"`
	Category   []string       `help:"Features that are categories although they are numbers." placeholder:"COLUMN"`
	Monotone   map[string]int `help:"Constraint on the target as a feature grows: 1: it never falls; -1: it never rises." placeholder:"COLUMN=SIGN"`
	Weight     string         `help:"Column with the weight of each example." placeholder:"COLUMN"`
	Unit       string         `help:"Unit of the target, such as s. Rows with a duration of 0 or below, or a ratio outside 0 to 1, are dropped."`
	Family     string         `help:"Family of regressors (auto, forest, boosting, law, gaussian)." enum:"auto,forest,boosting,law,gaussian" default:"auto"`
	Grid       string         `help:"Search a grid of forest hyperparameters first: none, or paper for the 252 combinations of the ICPE 2021 study." enum:"none,paper" default:"none"`
	Transform  string         `help:"Transformation of the target (auto, log, none)." enum:"auto,log,none" default:"auto"`
	Confidence float64        `help:"Confidence of the upper bound by which regressors are compared, between 0 and 1." default:"0.9"`
	Shuffles   int            `help:"Number of random divisions of the configurations into folds; 0: 4, or 1 above 1000 examples." default:"0"`
	Folds      int            `help:"Number of folds of the cross-validation." default:"5"`
	Seed       uint64         `help:"Seed of all random numbers." default:"1"`
	Threads    int            `help:"Maximum number of processors; 0: all but one." default:"0"`
	NoProgress bool           `help:"Show no progress bar."`
	Out        string         `help:"Directory for the regressor and its report." required:"" type:"path" placeholder:"DIR"`
}

// Help returns the examples of courier regressor fit.
func (c *regressorFit) Help() string {
	return `Example:
  courier regressor fit --examples runs.csv --target seconds --unit s \
    --features batch,cpus,model --out fitted`
}

func (c *regressorFit) Run(w *environment) error {
	t, err := c.read()
	if err != nil {
		return err
	}
	f := &report.Fit{}
	f.CleanExamples, err = t.Dataset(table.Columns{
		Target:     c.Target,
		Unit:       c.Unit,
		Features:   c.Features,
		Categories: c.Category,
		Monotone:   c.Monotone,
		Group:      c.Group,
		Weight:     c.Weight,
		Log:        c.Transform == "log",
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	if err := c.fit(w, f); err != nil {
		return err
	}
	if err := c.save(w, f); err != nil {
		return err
	}
	if c.Output == "json" {
		return f.WriteJSON(w.stdout)
	}
	if err := f.WriteText(w.stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.stdout,
		"\nwritten: %s with %s, %s, report.txt, report.json and report.html\n",
		c.Out, modelFile, manifestFile)
	return err
}

func (c *regressorFit) fit(w *environment, f *report.Fit) error {
	o := regress.SelectOptions{
		Families:   familiesOf(c.Family),
		Confidence: c.Confidence,
		Folds:      c.Folds,
		Shuffles:   c.Shuffles,
		Seed:       c.Seed,
		Threads:    c.Threads,
		Baselines:  []regress.Baseline{regress.QueueingBaseline(f.Data)},
	}
	if c.Transform != "auto" {
		o.Transform = regress.Transform(c.Transform)
	}
	if c.Grid == "paper" {
		progress := c.progress(w, "trees of the grid")
		best, err := f.SearchGrid(w.ctx, regress.ForestOptions{
			Transform: regress.Transform(strings.TrimPrefix(c.Transform, "auto")),
			Seed:      c.Seed,
			Folds:     c.Folds,
			Threads:   c.Threads,
			Progress:  progress.show,
		})
		progress.End()
		if err != nil {
			return err
		}
		o.Methods = append(o.Methods, best)
	}
	progress := c.progress(w, "fits")
	o.Progress = progress.show
	var err error
	f.Regressor, f.Report, err = regress.Select(w.ctx, f.Data, o)
	progress.End()
	if errors.Is(err, regress.ErrTooFewExamples) {
		return fmt.Errorf("%w: measure more configurations, best at the ends and in the middle of"+
			" each feature", err)
	}
	if err != nil {
		return err
	}
	f.Regressor.Manifest.Version = buildVersion()
	f.Predictor, err = regress.Compile(f.Regressor)
	return err
}

func familiesOf(flag string) []string {
	switch flag {
	case "", "auto":
		return regress.Families()
	case "law":
		return []string{regress.FamilyLaw, regress.FamilyLawTrees}
	}
	return []string{cmp.Or(flag, regress.FamilyForest)}
}

// fitProgress draws a progress bar on a terminal, at most once per percent.
type fitProgress struct {
	*services.ProgressBar
	what        string
	lastPercent int
}

func (c *regressorFit) progress(w *environment, what string) *fitProgress {
	b := services.NewProgressBar(w.stderr, 1)
	b.Terminal = b.Terminal && !c.NoProgress
	return &fitProgress{ProgressBar: b, what: what, lastPercent: -1}
}

func (p *fitProgress) show(done, planned int) {
	if percent := 100 * done / planned; p.Terminal && percent != p.lastPercent {
		p.lastPercent, p.Total = percent, planned
		p.Draw(done, p.what)
	}
}

// save writes the directory. The manifest comes last: a directory with a manifest is complete.
func (c *regressorFit) save(w *environment, f *report.Fit) error {
	manifest, err := f.Regressor.EncodeManifest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	write := func(data []byte) func(io.Writer) error {
		return func(out io.Writer) error {
			_, err := out.Write(data)
			return err
		}
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{modelFile, write(f.Regressor.EncodeModel())},
		{"report.txt", f.WriteText},
		{"report.json", f.WriteJSON},
		{"report.html", f.WriteHTML},
		{manifestFile, write(manifest)},
	} {
		if err := writeOut(w, filepath.Join(c.Out, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}
