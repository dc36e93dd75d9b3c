package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"courier/regress"
)

// regressorCommand tells about the regressors of a cluster, and changes which is
// in use; and it fits and uses regressors on files, without any server.
type regressorCommand struct {
	List     regressorList     `cmd:"" help:"List the regressors of a cluster: in use, challenging, former, rejected."`
	Show     regressorShow     `cmd:"" help:"Tell the life of a regressor of a cluster, or what a directory holds."`
	Train    regressorTrain    `cmd:"" help:"Fit the regressors of a cluster now."`
	Promote  regressorPromote  `cmd:"" help:"Put a regressor in use that was fitted before."`
	Rollback regressorRollback `cmd:"" help:"Put the regressor in use again that was before."`
	Report   regressorReport   `cmd:"" help:"Write the life of every regressor of a cluster as a page."`

	Fit     regressorFit     `cmd:"" help:"Choose and fit a regressor from a table of examples." group:"files"`
	Predict regressorPredict `cmd:"" help:"Add predictions, bounds and probabilities to a table." group:"files"`
	Compare regressorCompare `cmd:"" help:"Compare two regressors on the same examples." group:"files"`
	Export  regressorExport  `cmd:"" help:"Write a regressor for another program." group:"files"`
}

// The files of a regressor's directory.
const (
	modelFile    = "regressor.txt"
	manifestFile = "manifest.json"
)

// examplesFlags say where examples are.
type examplesFlags struct {
	Examples string            `help:"Table to read, CSV with a header line or JSON lines; - is standard input." required:"" placeholder:"FILE"`
	Where    map[string]string `help:"Only rows with these values, such as time_suspect=0." placeholder:"COLUMN=VALUE"`
}

func (f *examplesFlags) read() (*exampleTable, error) {
	in := io.Reader(os.Stdin)
	if f.Examples != "-" {
		file, err := os.Open(f.Examples)
		if err != nil {
			return nil, err
		}
		defer file.Close() // only read
		in = file
	}
	t, err := readExamples(in)
	if err == nil {
		err = t.where(f.Where)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Examples, err)
	}
	return t, nil
}

// loadRegressor reads a directory that fit wrote.
func loadRegressor(dir string) (*regress.Predictor, error) {
	model, err := os.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return p, nil
}

// rowsFor returns a row of features for every row of a table. Levels that the
// regressor does not know are marked by -1, which it answers as extrapolated.
func rowsFor(p *regress.Predictor, t *exampleTable) ([][]float64, error) {
	rows := make([][]float64, len(t.rows))
	for _, f := range p.Features() {
		values, err := t.values(f)
		if err != nil {
			return nil, err
		}
		k, err := t.column(f.Name)
		if err != nil {
			return nil, err
		}
		for i, x := range values {
			if f.Levels != nil && math.IsNaN(x) && strings.TrimSpace(t.rows[i][k]) != "" {
				x = -1
			}
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("example %d: feature %s is %q, want %s", i+1, f.Name, t.rows[i][k], wanted(f))
			}
			rows[i] = append(rows[i], x)
		}
	}
	return rows, nil
}

func wanted(f regress.Feature) string {
	if f.Levels != nil {
		return "one of " + strings.Join(f.Levels, ", ")
	}
	return "a number"
}

type regressorPredict struct {
	examplesFlags
	Regressor  string  `help:"Directory of the regressor." required:"" type:"path" placeholder:"DIR"`
	SLO        float64 `name:"slo" help:"Limit whose probability is asked for, in the unit of the target." placeholder:"SECONDS"`
	Confidence float64 `help:"Of the upper bound, between 0 and 1." default:"0.9"`
	Out        string  `help:"File to write; - is standard output." default:"-" placeholder:"FILE"`
}

// predicted are the columns that predict adds.
var predicted = []string{"prediction", "upper_bound", "probability", "extrapolated"}

func (c *regressorPredict) Run(w *world) error {
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c.Confidence)
	}
	if math.IsNaN(c.SLO) || c.SLO < 0 {
		return fmt.Errorf("slo is %g, want a number above 0", c.SLO)
	}
	p, err := loadRegressor(c.Regressor)
	if err != nil {
		return err
	}
	t, err := c.read()
	if err != nil {
		return err
	}
	for _, name := range predicted {
		if slices.Contains(t.header, name) {
			return fmt.Errorf("%s: there is a column %s already", c.Examples, name)
		}
	}
	rows, err := rowsFor(p, t)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	return writeOut(w, c.Out, func(out io.Writer) error { return c.write(out, p, t, rows) })
}

func (c *regressorPredict) write(out io.Writer, p *regress.Predictor, t *exampleTable, rows [][]float64) error {
	lines := csv.NewWriter(out)
	if err := lines.Write(append(slices.Clone(t.header), predicted...)); err != nil {
		return err
	}
	for i, row := range rows {
		point, err := p.Predict(row)
		if err != nil {
			return fmt.Errorf("%s: example %d: %w", c.Examples, i+1, err)
		}
		bound, probability := "", ""
		if b, _ := p.UpperBound(point, c.Confidence); !math.IsInf(b, 0) {
			bound = nine(b)
		}
		if c.SLO > 0 && p.Manifest().Calibration.Count > 0 {
			chance, _ := p.Probability(point, c.SLO)
			probability = nine(chance)
		}
		line := append(slices.Clone(t.rows[i]), nine(point.Value), bound, probability, extrapolated(point))
		if err := lines.Write(line); err != nil {
			return err
		}
	}
	lines.Flush()
	return lines.Error()
}

// nine writes nine digits.
func nine(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }

type regressorExport struct {
	Regressor string `arg:"" help:"Directory of the regressor." type:"path"`
	Format    string `help:"lightgbm: text that LightGBM and leaves read. manifest: all else, as JSON." enum:"lightgbm,manifest" default:"lightgbm"`
	Out       string `help:"File to write; - is standard output." default:"-" placeholder:"FILE"`
}

func (c *regressorExport) Run(w *world) error {
	p, err := loadRegressor(c.Regressor)
	if err != nil {
		return err
	}
	m := p.Manifest()
	name := map[string]string{"lightgbm": modelFile, "manifest": manifestFile}[c.Format]
	if c.Format == "lightgbm" && (m.Law != nil || m.Gaussian != nil) {
		return fmt.Errorf("%s: a regressor of the family %s is more than trees, and LightGBM's format holds trees only: fit it with --family forest or boosting, or export --format manifest", c.Regressor, m.Family)
	}
	data, err := os.ReadFile(filepath.Join(c.Regressor, name))
	if err != nil {
		return err
	}
	if c.Format == "lightgbm" && m.Transform == regress.Log {
		fmt.Fprintln(w.stderr, "The trees predict the logarithm of the target: take exp of what they say.")
	}
	return writeOut(w, c.Out, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

type regressorCompare struct {
	examplesFlags
	outputFlags
	A          string   `arg:"" help:"Directory of a regressor."`
	B          string   `arg:"" help:"Directory of another."`
	Group      []string `help:"Columns that make a setting (default: all features of both)." placeholder:"COLUMN"`
	Confidence float64  `help:"Of the upper bounds, between 0 and 1." default:"0.9"`
}

// comparedRegressor is one side of a comparison.
type comparedRegressor struct {
	Name     string           `json:"name"`
	Family   string           `json:"family"`
	Scores   regress.Scores   `json:"scores"`
	Coverage regress.Coverage `json:"coverage"`
	// Extrapolated is the share of examples beyond what it was fitted on.
	Extrapolated float64 `json:"extrapolated_ratio"`
	// Between is the share of the others between levels that it was fitted on.
	Between float64   `json:"between_ratio"`
	losses  []float64 // pinball loss of each bound
}

func (c *regressorCompare) Run(w *world) error {
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c.Confidence)
	}
	a, err := loadRegressor(c.A)
	if err != nil {
		return err
	}
	b, err := loadRegressor(c.B)
	if err != nil {
		return err
	}
	if ta, tb := a.Manifest().Target, b.Manifest().Target; ta != tb {
		return fmt.Errorf("%s predicts %s, %s predicts %s", c.A, ta, c.B, tb)
	}
	t, err := c.read()
	if err != nil {
		return err
	}
	truth, group, err := c.truths(t, a, b)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	var sides [2]comparedRegressor
	for i, p := range []*regress.Predictor{a, b} {
		if sides[i], err = c.side(p, t, truth, group); err != nil {
			return fmt.Errorf("%s: %w", c.Examples, err)
		}
		sides[i].Name = []string{c.A, c.B}[i]
	}
	difference, err := regress.Paired(sides[0].losses, sides[1].losses, group, 1)
	if err != nil {
		return err
	}
	return c.print(w.stdout, sides, difference)
}

// truths keeps the rows of the table that have a target.
func (c *regressorCompare) truths(t *exampleTable, a, b *regress.Predictor) ([]float64, []int, error) {
	target, err := t.column(a.Manifest().Target)
	if err != nil {
		return nil, nil, err
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return math.IsNaN(number(row[target])) })
	if len(t.rows) == 0 {
		return nil, nil, fmt.Errorf("no example has a %s", a.Manifest().Target)
	}
	var truth []float64
	for _, row := range t.rows {
		truth = append(truth, number(row[target]))
	}
	names := c.Group
	if len(names) == 0 {
		for _, f := range slices.Concat(a.Features(), b.Features()) {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	group, err := t.groups(names)
	return truth, group, err
}

func (c *regressorCompare) side(p *regress.Predictor, t *exampleTable, truth []float64, group []int) (comparedRegressor, error) {
	s := comparedRegressor{Family: p.Manifest().Family}
	rows, err := rowsFor(p, t)
	if err != nil {
		return s, err
	}
	var points, bounds []float64
	for i, row := range rows {
		point, err := p.Predict(row)
		if err != nil {
			return s, err
		}
		bound, _ := p.UpperBound(point, c.Confidence)
		points, bounds = append(points, point.Value), append(bounds, bound)
		switch extrapolated(point) {
		case "true":
			s.Extrapolated += 1 / float64(len(rows))
		case "between":
			s.Between += 1 / float64(len(rows))
		}
		if math.IsInf(bound, 0) {
			bound = point.Value // without a bound, the prediction is judged as one
		}
		s.losses = append(s.losses, regress.Pinball(truth[i:i+1], []float64{bound}, c.Confidence))
	}
	s.Scores = regress.Score(truth, points, group, 1)
	s.Coverage = regress.Cover(truth, points, bounds, c.Confidence)
	return s, nil
}

func (c *regressorCompare) print(out io.Writer, sides [2]comparedRegressor, difference regress.Estimate) error {
	verdict := "the difference may be luck"
	switch {
	case difference.High < 0:
		verdict = sides[0].Name + " is better"
	case difference.Low > 0:
		verdict = sides[1].Name + " is better"
	}
	if c.Output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Regressors [2]comparedRegressor `json:"regressors"`
			Pinball    regress.Estimate     `json:"pinball_difference"`
			Confidence float64              `json:"confidence"`
			Verdict    string               `json:"verdict"`
		}{sides, difference, c.Confidence, verdict})
	}
	return writeComparison(out, sides, difference, c.Confidence, verdict)
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
