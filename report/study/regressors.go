package study

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"courier/regress/baseline"
	"courier/regress/table"
)

// RegressorComparison scores how methods predict the time of runs that they did not see.
type RegressorComparison struct {
	Response string `json:"response"`
	Runs     int    `json:"runs"`
	Folds    int    `json:"folds"`
	// Repeated holds out runs of configurations that have other runs; Unmeasured holds out all
	// runs of a configuration. Each is sorted by the error.
	Repeated   []MethodScore `json:"repeated,omitempty"`
	Unmeasured []MethodScore `json:"unmeasured,omitempty"`
}

// MethodScore is the score of a method.
type MethodScore struct {
	Method string          `json:"method"`
	Runs   int             `json:"runs"` // that were held out and predicted
	Scores baseline.Scores `json:"scores"`
	// Error is the reason why there are no scores.
	Error string `json:"error,omitempty"`
}

const (
	heldOutFolds = 5
	// minCompared and maxCompared bound the number of runs of a comparison.
	minCompared, maxCompared = 10, 1000
)

type heldOutComparison struct {
	table    *table.Table
	rows     []int // of the table
	data     *baseline.Dataset
	groups   []int // configuration of each row
	settings []string
	methods  []method
}

// compareRegressors adds the comparison of regressors for the time, if there are enough runs.
func (s *RunsAnalysis) compareRegressors(ctx context.Context, seed uint64) error {
	response := cmp.Or(Column(s.Table, EpochSeconds), Column(s.Table, TotalSeconds))
	if response == "" || slices.Contains(s.Settings, response) {
		s.Notes = append(s.Notes, "regressors are not compared: there is no column total_seconds")
		return nil
	}
	c, err := s.comparison(ctx, response, seed)
	if err != nil {
		s.Notes = append(s.Notes, "regressors are not compared: "+err.Error())
		return nil
	}
	r := &RegressorComparison{Response: response, Runs: len(c.rows), Folds: heldOutFolds}
	if r.Repeated, err = c.score(ctx, c.foldsOfRuns(seed)); err != nil {
		return err
	}
	if r.Unmeasured, err = c.score(ctx, c.foldsOfConfigurations(seed)); err != nil {
		return err
	}
	s.Regressors = r
	return nil
}

func (s *RunsAnalysis) comparison(ctx context.Context, response string, seed uint64) (*heldOutComparison, error) {
	c := &heldOutComparison{data: &baseline.Dataset{}, settings: s.Settings}
	seconds := Numbers(s.Table, response)
	columns := make([]int, len(s.Settings))
	for i, name := range s.Settings {
		columns[i] = slices.Index(s.Table.Header, name)
	}
	for row, cells := range s.Table.Rows {
		if seconds[row] > 0 && !slices.ContainsFunc(columns, func(k int) bool {
			return strings.TrimSpace(cells[k]) == ""
		}) {
			c.rows = append(c.rows, row)
		}
	}
	if len(c.rows) < minCompared {
		return nil, fmt.Errorf("%d runs have a time, want at least %d", len(c.rows), minCompared)
	}
	if len(c.rows) > maxCompared {
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(c.rows), func(i, k int) {
			c.rows[i], c.rows[k] = c.rows[k], c.rows[i]
		})
		c.rows = c.rows[:maxCompared]
		slices.Sort(c.rows)
	}
	c.table = &table.Table{Header: s.Table.Header}
	for _, row := range c.rows {
		c.table.Rows = append(c.table.Rows, s.Table.Rows[row])
		c.data.Target = append(c.data.Target, seconds[row])
	}
	c.data.Rows = make([][]float64, len(c.rows))
	for _, name := range s.Settings {
		c.addFeature(name)
	}
	c.groups = make([]int, len(c.rows))
	for group, rows := range groupRows(c.table, s.Settings) {
		for _, i := range rows {
			c.groups[i] = group
		}
	}
	c.methods = c.allMethods(ctx)
	return c, c.data.Validate()
}

// lawFeatures are the names of the features of the queueing law.
var lawFeatures = map[ColumnRole]string{
	BatchSize: "batch_size",
	CPUs:      "cpus",
	Jobs:      "concurrent_jobs",
}

// addFeature adds a column as a feature: a number if all its cells are numbers, else a category.
func (c *heldOutComparison) addFeature(column string) {
	f := baseline.Feature{Name: column}
	for role, name := range lawFeatures {
		if Column(c.table, role) == column {
			f.Name = name
		}
	}
	values := Numbers(c.table, column)
	if slices.ContainsFunc(values, math.IsNaN) {
		f.Levels = slices.Sorted(slices.Values(levels(c.table, column)))
		k := slices.Index(c.table.Header, column)
		for i, row := range c.table.Rows {
			values[i] = float64(slices.Index(f.Levels, strings.TrimSpace(row[k])))
		}
	}
	c.data.Features = append(c.data.Features, f)
	for i, x := range values {
		c.data.Rows[i] = append(c.data.Rows[i], x)
	}
}

// foldsOfRuns deals the runs of each configuration to folds; -1 for the only run of one.
func (c *heldOutComparison) foldsOfRuns(seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 1))
	folds := slices.Repeat([]int{-1}, len(c.rows))
	for _, runs := range groupRows(c.table, c.settings) {
		first := random.IntN(heldOutFolds)
		for k, i := range random.Perm(len(runs)) {
			if len(runs) > 1 {
				folds[runs[i]] = (first + k) % heldOutFolds
			}
		}
	}
	return folds
}

// foldsOfConfigurations deals the configurations to folds.
func (c *heldOutComparison) foldsOfConfigurations(seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 2))
	deal := random.Perm(slices.Max(c.groups) + 1)
	folds := make([]int, len(c.rows))
	for i, g := range c.groups {
		folds[i] = deal[g] % heldOutFolds
	}
	return folds
}

// score scores all methods on the runs of the folds. It returns nil if no run is in a fold.
func (c *heldOutComparison) score(ctx context.Context, folds []int) ([]MethodScore, error) {
	if slices.Max(folds) < 0 {
		return nil, nil
	}
	var scores []MethodScore
	for _, m := range c.methods {
		s, err := c.scoreMethod(m, folds)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s = MethodScore{Error: err.Error()}
		}
		s.Method = m.name
		scores = append(scores, s)
	}
	slices.SortStableFunc(scores, func(a, b MethodScore) int {
		return cmp.Or(cmp.Compare(len(a.Error), len(b.Error)),
			cmp.Compare(a.Scores.MAPE.Value, b.Scores.MAPE.Value))
	})
	return scores, nil
}

func (c *heldOutComparison) scoreMethod(m method, folds []int) (MethodScore, error) {
	var truth, predicted []float64
	var groups []int
	for fold := range heldOutFolds {
		var train, test []int
		for i, f := range folds {
			if f == fold {
				test = append(test, i)
			} else {
				train = append(train, i)
			}
		}
		if len(test) == 0 {
			continue
		}
		predict, err := m.fit(train)
		if err != nil {
			return MethodScore{}, err
		}
		for _, i := range test {
			y, err := predict(i)
			if err != nil {
				return MethodScore{}, err
			}
			truth, predicted = append(truth, c.data.Target[i]), append(predicted, y)
			groups = append(groups, c.groups[i])
		}
	}
	return MethodScore{Runs: len(truth), Scores: baseline.Score(truth, predicted, groups, 1)}, nil
}

func (c *RegressorComparison) write(w io.Writer) {
	fmt.Fprintf(w, "\nRegressors of %s on held-out runs of %d, in %d folds\n", c.Response, c.Runs,
		c.Folds)
	writeScores(w, "configurations with other runs", c.Repeated)
	writeScores(w, "configurations that were never measured", c.Unmeasured)
}

// writeScores writes the scores of the methods on a kind of held-out runs; nothing without any.
func writeScores(w io.Writer, title string, scores []MethodScore) {
	if len(scores) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\truns\tMAPE\t95 %% interval\tR2\n", title)
	for _, m := range scores {
		if m.Error != "" {
			fmt.Fprintf(w, "%s\t-\t\t\t\t%s\n", m.Method, m.Error)
			continue
		}
		e := m.Scores.MAPE
		fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%.1f to %.1f %%\t%.4f\n", m.Method, m.Runs,
			100*e.Value, 100*e.Low, 100*e.High, m.Scores.R2.Value)
	}
}
