package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"courier/regress"
)

type regressorFit struct {
	examplesFlags
	outputFlags
	Target     string         `help:"Column to predict; rows where it is empty are left out." required:"" placeholder:"COLUMN"`
	Features   []string       `help:"Columns to predict from; text is a category." required:"" placeholder:"COLUMN"`
	Group      []string       `help:"Columns that make a setting: its rows are never on both sides of a split (default: the features)." placeholder:"COLUMN"`
	Category   []string       `help:"Features that are categories though they are written as numbers." placeholder:"COLUMN"`
	Monotone   map[string]int `help:"How the target must move as a feature grows: 1 never down, -1 never up." placeholder:"COLUMN=SIGN"`
	Weight     string         `help:"Column with the weight of each example." placeholder:"COLUMN"`
	Unit       string         `help:"Unit of the target, such as s. A duration at 0 or below, and a ratio outside 0 to 1, is no usable example."`
	Family     string         `help:"auto, forest, boosting, law or gaussian." enum:"auto,forest,boosting,law,gaussian" default:"auto"`
	Grid       string         `help:"paper: search the 252 forest settings of the ICPE 2021 study, too." enum:"none,paper" default:"none"`
	Transform  string         `help:"Of the target: auto, log or none." enum:"auto,log,none" default:"auto"`
	Confidence float64        `help:"Of the bound by which regressors are chosen, between 0 and 1." default:"0.9"`
	Shuffles   int            `help:"How often the settings are dealt into folds; 0: 4, or 1 beyond 1000 examples." default:"0"`
	Folds      int            `help:"Folds of settings." default:"5"`
	Seed       uint64         `help:"Of all that is random." default:"1"`
	Threads    int            `help:"Most processors to use; 0: all but one." default:"0"`
	NoProgress bool           `help:"No progress bar."`
	Out        string         `help:"Directory to write the regressor and its report to." required:"" type:"path" placeholder:"DIR"`
}

// fitted is what fit knows in the end.
type fittedRegressor struct {
	regressor *regress.Regressor
	predictor *regress.Predictor
	data      *regress.Dataset
	report    regress.Report
	dropped   []regress.Dropped
	unknown   int // rows without target
	grid      []regress.GridPoint
	bestPoint int
}

func (c *regressorFit) Run(w *world) error {
	t, err := c.read()
	if err != nil {
		return err
	}
	f := &fittedRegressor{}
	if err := c.dataset(t, f); err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	if err := c.fit(w, f); err != nil {
		return err
	}
	if err := c.save(w, f); err != nil {
		return err
	}
	if c.Output == "json" {
		return writeReportJSON(w.stdout, f)
	}
	if err := writeReportText(w.stdout, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.stdout, "\nwritten: %s with %s, %s, report.txt, report.json and report.html\n", c.Out, modelFile, manifestFile)
	return err
}

// dataset turns the rows that have a target into clean examples.
func (c *regressorFit) dataset(t *exampleTable, f *fittedRegressor) error {
	target, err := t.column(c.Target)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	before := len(t.rows)
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return strings.TrimSpace(row[target]) == "" })
	if f.unknown = before - len(t.rows); len(t.rows) == 0 {
		return fmt.Errorf("no row has a %s", c.Target)
	}
	d := &regress.Dataset{TargetName: c.Target, TargetUnit: c.Unit}
	for _, row := range t.rows {
		d.Target = append(d.Target, number(row[target]))
	}
	for name := range c.Monotone {
		if !slices.Contains(c.Features, name) {
			return fmt.Errorf("monotone: %s is no feature", name)
		}
	}
	for _, name := range c.Features {
		if name == c.Target {
			return fmt.Errorf("features: %s is the target", name)
		}
		feature, err := t.feature(name, slices.Contains(c.Category, name))
		if err != nil {
			return fmt.Errorf("features: %w", err)
		}
		feature.Monotone = c.Monotone[name]
		values, err := t.values(feature)
		if err != nil {
			return fmt.Errorf("features: %w", err)
		}
		d.Features, d.Columns = append(d.Features, feature), append(d.Columns, values)
	}
	if d.Group, err = t.groups(c.Group); err != nil {
		return err
	}
	if c.Weight != "" {
		if d.Weight, err = t.values(regress.Feature{Name: c.Weight}); err != nil {
			return fmt.Errorf("weight: %w", err)
		}
	}
	low, high := c.targets()
	f.data, f.dropped, err = d.Clean(low, high)
	return err
}

// targets is what a target can be: durations are above 0, as all that has a
// logarithm, and ratios at most 1.
func (c *regressorFit) targets() (low, high float64) {
	switch {
	case c.Transform == "log" || slices.Contains(durationUnits, c.Unit):
		return math.SmallestNonzeroFloat64, math.MaxFloat64
	case c.Unit == "ratio":
		return 0, 1
	}
	return -math.MaxFloat64, math.MaxFloat64
}

var durationUnits = []string{"s", "seconds", "ms", "us", "ns", "min", "minutes", "h", "hours"}

func (c *regressorFit) fit(w *world, f *fittedRegressor) error {
	o := regress.SelectOptions{Families: familiesOf(c.Family), Confidence: c.Confidence, Folds: c.Folds, Shuffles: c.Shuffles, Seed: c.Seed, Threads: c.Threads}
	if c.Transform != "auto" {
		o.Transform = regress.Transform(c.Transform)
	}
	o.Baselines = []regress.Baseline{regress.QueueingBaseline(f.data)}
	if c.Grid == "paper" {
		if err := c.search(w, f, &o); err != nil {
			return err
		}
	}
	progress := c.progress(w, "fits")
	o.Progress = progress.tell
	var err error
	f.regressor, f.report, err = regress.Select(w.ctx, f.data, o)
	progress.end()
	if errors.Is(err, regress.ErrTooFewExamples) {
		return fmt.Errorf("%w: measure more settings, best at the ends and in the middle of each feature", err)
	}
	if err != nil {
		return err
	}
	f.regressor.Manifest.Version = buildVersion()
	f.predictor, err = regress.Compile(f.regressor)
	return err
}

// search adds the best forest of the paper's grid to what is compared.
func (c *regressorFit) search(w *world, f *fittedRegressor, o *regress.SelectOptions) error {
	progress := c.progress(w, "trees of the grid")
	var err error
	f.grid, f.bestPoint, err = regress.SearchForest(w.ctx, f.data, regress.PaperGrid(len(f.data.Features)),
		regress.ForestOptions{Bootstrap: true, Transform: regress.Transform(strings.TrimPrefix(c.Transform, "auto")), Seed: c.Seed, Folds: c.Folds, Threads: c.Threads, Progress: progress.tell})
	progress.end()
	if err != nil {
		return err
	}
	best := f.grid[f.bestPoint].Options
	o.Methods = append(o.Methods, regress.ForestMethod(fmt.Sprintf("forest of the grid: %d trees, depth %d, %s", best.Trees, best.MaxDepth, best.Criterion), best))
	return nil
}

// fitProgress draws a bar at most once per percent, on a terminal only.
type fitProgress struct {
	*bar
	what string
	last int
}

func (c *regressorFit) progress(w *world, what string) *fitProgress {
	b := newBar(w.stderr, 1)
	b.terminal = b.terminal && !c.NoProgress
	return &fitProgress{bar: b, what: what, last: -1}
}

func (p *fitProgress) tell(done, planned int) {
	if percent := 100 * done / planned; p.terminal && percent != p.last {
		p.last, p.total = percent, planned
		p.draw(done, p.what)
	}
}

// save writes the directory; the manifest comes last, so that a directory with
// one is whole.
func (c *regressorFit) save(w *world, f *fittedRegressor) error {
	manifest, err := f.regressor.EncodeManifest()
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
		{modelFile, write(f.regressor.EncodeModel())},
		{"report.txt", func(out io.Writer) error { return writeReportText(out, f) }},
		{"report.json", func(out io.Writer) error { return writeReportJSON(out, f) }},
		{"report.html", func(out io.Writer) error { return writeReportHTML(out, f) }},
		{manifestFile, write(manifest)},
	} {
		if err := writeOut(w, filepath.Join(c.Out, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

func writeReportJSON(out io.Writer, f *fittedRegressor) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		regress.Report
		Dropped []regress.Dropped  `json:"dropped,omitempty"`
		Empty   int                `json:"rows_without_target"`
		Served  *regress.Scores    `json:"scores_of_the_served"`
		Cover   []regress.Coverage `json:"coverage_of_the_served"`
		Grid    []gridLine         `json:"grid,omitempty"`
	}{f.report, f.dropped, f.unknown, f.regressor.Manifest.Scores, f.regressor.Manifest.Coverage, gridLines(f.grid)})
}

// gridLine is a setting of the grid in JSON, where NaN has no place.
type gridLine struct {
	Options regress.ForestOptions `json:"options"`
	MSE     regress.Estimate      `json:"mse"`
	R2      regress.Estimate      `json:"r2"`
	MAPE    regress.Estimate      `json:"mape"`
}

func gridLines(points []regress.GridPoint) []gridLine {
	unknown := math.NaN()
	var lines []gridLine
	for _, p := range points {
		lines = append(lines, gridLine{p.Options, regress.Estimate{Value: p.MSE, Low: unknown, High: unknown},
			regress.Estimate{Value: p.R2, Low: unknown, High: unknown}, regress.Estimate{Value: p.MAPE, Low: unknown, High: unknown}})
	}
	return lines
}
