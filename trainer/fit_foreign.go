package trainer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"courier/regress/leastsquares"
	"courier/regress/treefile"
	"courier/schemas"
)

// Rules for the columns of foreign load.
const (
	// foreignKnownShare is the share of the examples, by weight, that must know a foreign load.
	foreignKnownShare = 0.5
	// foreignRuns is the minimum number of runs at the most common level of a foreign load, and at
	// all other levels together. With fewer runs other causes may explain their times.
	foreignRuns = 5
	// foreignGain is the share by which a column must lower the held-out error.
	foreignGain = 0.02
	// lastingShare is the squared error of a run's first value as a prediction of its later values,
	// as a share of that between independent values, up to which a foreign load lasts.
	lastingShare = 0.2
	// foreignExamples is the maximum number of examples on which columns are compared.
	foreignExamples = 2000
	// foreignFolds is the number of folds of that comparison.
	foreignFolds = 5
)

// chooseForeign selects the columns of foreign load for a fit, and reports whether they differ from
// those of the champion. Its columns are kept, with their typical values, unless they raise the
// held-out error: each change defines other configurations, which are fitted from the start.
func chooseForeign(
	target string, examples []Example, before *treefile.Manifest,
) (columns schemas.ForeignColumns, isNew bool) {
	fleeting := func(c schemas.ForeignColumn) bool { return !lasts(c, examples) }
	kept := foreignOf(before)
	atStart := withForeignAtStart(target, examples)
	if len(kept) > 0 && !slices.ContainsFunc(kept, fleeting) {
		trial := newForeignTrial(thin(atStart, foreignExamples))
		if !(meanOf(trial.errors(kept)) > meanOf(trial.errors(nil))) {
			return kept, false
		}
	}

	columns = slices.DeleteFunc(foreignColumns(target, atStart), fleeting)
	return columns, len(columns) > 0 || len(kept) > 0
}

// foreignOf returns the columns of foreign load of a regressor.
func foreignOf(m *treefile.Manifest) (columns schemas.ForeignColumns) {
	if m == nil {
		return nil
	}
	for _, f := range m.Features {
		columns = columns.Add(f.Name, f.Typical, f.Max)
	}
	return columns
}

// lasts reports whether a foreign load lasts, that is, whether the first value of a run predicts
// the later ones, with a mean squared error of at most lastingShare of the error for independent
// values. It returns false if no run has several values.
func lasts(c schemas.ForeignColumn, examples []Example) bool {
	ordered := slices.Clone(examples)
	slices.SortStableFunc(ordered, func(a, b Example) int { return a.At.Compare(b.At) })

	first := map[runKey]float64{}
	squares, n := 0.0, 0.0
	var values []float64
	for i := range ordered {
		x := &ordered[i]
		r := c.Ratio(&x.Features.Load)
		if x.Job == "" || !r.Known {
			continue
		}
		key := runKey{x.Job, x.Run}
		if begin, found := first[key]; found {
			squares += (r.Value - begin) * (r.Value - begin)
			n++
		} else {
			first[key] = r.Value
		}
		values = append(values, r.Value)
	}
	if n == 0 {
		return false
	}

	mean, variance := meanOf(values), 0.0
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	return squares/n <= lastingShare*2*variance
}

// withForeignAtStart returns the examples with the foreign load that was first measured in each
// run. A prediction knows the load when a job starts, not how it changes afterwards. So changes
// during a run count as noise of the run.
func withForeignAtStart(target string, examples []Example) []Example {
	if target != schemas.TargetEpochTime {
		return examples
	}
	examples = slices.Clone(examples)
	ratioIn := []func(*schemas.Load) *schemas.Ratio{
		func(l *schemas.Load) *schemas.Ratio { return &l.ForeignCPURatio },
		func(l *schemas.Load) *schemas.Ratio { return &l.ForeignIOWaitRatio },
	}
	for _, ratio := range ratioIn {
		first := map[runKey]*Example{}
		for i := range examples {
			x := &examples[i]
			f := first[runKey{x.Job, x.Run}]
			if ratio(&x.Features.Load).Known && (f == nil || x.At.Before(f.At)) {
				first[runKey{x.Job, x.Run}] = x
			}
		}
		for i := range examples {
			x := &examples[i]
			if f := first[runKey{x.Job, x.Run}]; f != nil && x.Job != "" {
				*ratio(&x.Features.Load) = *ratio(&f.Features.Load)
			}
		}
	}
	return examples
}

// foreignColumns selects the columns of foreign load that clearly lower the held-out error. Only
// the epoch time has any. The selection is deterministic.
func foreignColumns(target string, examples []Example) (chosen schemas.ForeignColumns) {
	if target != schemas.TargetEpochTime {
		return nil
	}
	examples = thin(examples, foreignExamples)
	var candidates schemas.ForeignColumns
	for _, name := range []string{schemas.ColumnForeignCPU, schemas.ColumnForeignIOWait} {
		if column, ok := foreignColumn(name, examples); ok {
			candidates = append(candidates, column)
		}
	}
	if len(candidates) == 0 {
		return nil
	}

	trial := newForeignTrial(examples)
	without := trial.errors(nil)
	lowest := without
	for _, c := range candidates {
		alone := schemas.ForeignColumns{c}
		errors := trial.errors(alone)
		if trial.improves(errors, without) && meanOf(errors) < meanOf(lowest) {
			chosen, lowest = alone, errors
		}
	}
	if len(chosen) == 0 || len(candidates) == 1 {
		return chosen
	}

	other := candidates[0]
	if other == chosen[0] {
		other = candidates[1]
	}
	both := schemas.ForeignColumns{chosen[0], other}
	if trial.improves(trial.errors(both), lowest) {
		return both
	}
	return chosen
}

// foreignColumn returns a column as the examples describe it; ok is false if too few know its
// value, or if it hardly varies among them.
func foreignColumn(name string, examples []Example) (column schemas.ForeignColumn, ok bool) {
	column.Name = name
	runs := map[float64]map[string]bool{}
	all, known := 0.0, 0.0
	var values []float64
	for i := range examples {
		x := &examples[i]
		all += x.Weight
		r := column.Ratio(&x.Features.Load)
		if !r.Known {
			continue
		}
		known += x.Weight
		values = append(values, r.Value)
		if runs[r.Value] == nil {
			runs[r.Value] = map[string]bool{}
		}
		runs[r.Value][runOf(examples, i)] = true
	}
	if len(runs) < 2 || known < foreignKnownShare*all {
		return column, false
	}

	slices.Sort(values)
	column.Typical, column.Max = values[len(values)/2], values[len(values)-1]
	usual, others := usualLevel(runs), map[string]bool{}
	for level, of := range runs {
		if level != usual {
			maps.Copy(others, of)
		}
	}
	return column, len(runs[usual]) >= foreignRuns && len(others) >= foreignRuns
}

// usualLevel returns the level that most runs had; the lowest level breaks ties.
func usualLevel(runs map[float64]map[string]bool) (usual float64) {
	most := 0
	for _, level := range slices.Sorted(maps.Keys(runs)) {
		if n := len(runs[level]); n > most {
			usual, most = level, n
		}
	}
	return usual
}

// runOf returns the job of an example; an example without a job is a run of its own.
func runOf(examples []Example, i int) string {
	return cmp.Or(examples[i].Job, fmt.Sprint("#", i))
}

// foreignTrial measures how well columns of foreign load predict held-out runs.
type foreignTrial struct {
	examples []Example
	run      []int // number of the run of each example
	fold     []int // of each run
	group    []int // number of the configuration that its user chose, of each example
}

func newForeignTrial(examples []Example) *foreignTrial {
	t := &foreignTrial{examples: examples}
	runs, groups := map[string]int{}, map[string]int{}
	number := func(all map[string]int, name string) int {
		if _, known := all[name]; !known {
			all[name] = len(all)
		}
		return all[name]
	}
	for i := range examples {
		x := &examples[i]
		t.run = append(t.run, number(runs, runOf(examples, i)))
		t.group = append(t.group, number(groups, fmt.Sprintf("%q %q %d %d", x.level(),
			x.Hardware.NodeType(), x.Features.BatchSize, x.Features.CPUs)))
	}
	t.fold = rand.New(rand.NewPCG(1, 1)).Perm(len(runs))
	for run := range t.fold {
		t.fold[run] %= foreignFolds
	}
	return t
}

// errors returns for each example the absolute error of the logarithm of its time, predicted
// without its run: the mean of the other runs of its configuration, corrected for the load by least
// squares. It is NaN for an example without other runs.
func (t *foreignTrial) errors(columns schemas.ForeignColumns) []float64 {
	all := make([]float64, len(t.examples))
	for fold := range foreignFolds {
		t.predict(fold, columns, all)
	}
	return all
}

// predict sets the errors of the examples of a fold.
func (t *foreignTrial) predict(fold int, columns schemas.ForeignColumns, errors []float64) {
	// A mean holds the inputs of a configuration's training examples, and last their logarithm.
	means, counts := map[int][]float64{}, map[int]float64{}
	points := make([][]float64, len(t.examples))
	for i := range t.examples {
		points[i] = append(loadInputs(&t.examples[i], columns), math.Log(t.examples[i].Value))
		if g := t.group[i]; t.fold[t.run[i]] != fold {
			if means[g] == nil {
				means[g] = make([]float64, len(points[i]))
			}
			counts[g]++
			for k, v := range points[i] {
				means[g][k] += (v - means[g][k]) / counts[g]
			}
		}
	}

	var rows [][]float64
	var logs []float64
	last := len(points[0]) - 1
	centered := func(i int) []float64 {
		row := slices.Clone(points[i])
		for k, mean := range means[t.group[i]] {
			row[k] -= mean
		}
		return row
	}
	for i := range t.examples {
		if t.fold[t.run[i]] != fold {
			row := centered(i)
			rows, logs = append(rows, row[:last]), append(logs, row[last])
		}
	}
	if len(rows) == 0 {
		return
	}
	coefficients := leastsquares.Fit(rows, logs)
	for i := range t.examples {
		switch {
		case t.fold[t.run[i]] != fold:
		case means[t.group[i]] == nil:
			errors[i] = math.NaN()
		default:
			row := centered(i)
			errors[i] = math.Abs(row[last] - leastsquares.Predict(coefficients, row[:last]))
		}
	}
}

// loadInputs returns the inputs of the linear correction for the load of an example: the known jobs,
// and each foreign load, whose effect depends on the CPUs that the job uses itself.
func loadInputs(x *Example, columns schemas.ForeignColumns) []float64 {
	l := &x.Features.Load
	inputs := []float64{l.ConcurrentJobs, l.Processes}
	for _, c := range columns {
		ratio := c.Ratio(l).Or(c.Typical)
		inputs = append(inputs, ratio, ratio*float64(x.Features.CPUs))
	}
	return inputs
}

// improves reports whether errors are lower than others of the same examples, by more than the
// choice of runs explains: the 95 % interval of the mean difference of a run is below 0.
func (t *foreignTrial) improves(errors, others []float64) bool {
	if !(meanOf(errors) <= (1-foreignGain)*meanOf(others)) {
		return false
	}
	differences := map[int][]float64{}
	for i, run := range t.run {
		if d := errors[i] - others[i]; !math.IsNaN(d) {
			differences[run] = append(differences[run], d)
		}
	}
	var sum, squares, n float64
	for _, run := range slices.Sorted(maps.Keys(differences)) {
		d := meanOf(differences[run])
		sum, squares, n = sum+d, squares+d*d, n+1
	}
	mean := sum / n
	standardError := math.Sqrt(max(0, squares/n-mean*mean) / n)
	return mean+1.96*standardError < 0
}

// meanOf returns the mean of the numbers that are not NaN; NaN if there are none.
func meanOf(values []float64) float64 {
	sum, n := 0.0, 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}
