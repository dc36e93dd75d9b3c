package trainer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"courier/regress/leastsquares"
	"courier/regress/treefile"
	"courier/schemas"
)

// Rules for the columns of foreign load.
const (
	// foreignKnownShare is the share of the examples that must know a foreign load.
	foreignKnownShare = 0.5
	// foreignRuns is the minimum number of runs at the most common level of a foreign load, and at
	// all other levels together. With fewer runs other causes may explain their times.
	foreignRuns = 5
	// foreignGain is the share by which a column must lower the held-out error.
	foreignGain = 0.02
	// foreignExamples is the maximum number of examples on which columns are compared.
	foreignExamples = 2000
	// foreignFolds is the number of folds of that comparison.
	foreignFolds = 5
)

// chooseForeign selects the columns of foreign load for a fit on examples with the load at the start of
// their runs, and reports whether they differ from those of the champion. Its columns are kept, with their
// typical values, unless they raise the held-out error: each change defines other configurations, which are
// fitted from the start.
func chooseForeign(examples []Example, before *treefile.Manifest) (columns schemas.ForeignColumns, isNew bool) {
	kept, begun := foreignOf(before), map[runKey]bool{}
	later := slices.DeleteFunc(slices.Clone(examples), func(x Example) bool {
		run := runKey{x.Job, x.Run}
		isFirst := x.Job == "" || !begun[run]
		begun[run] = true
		return isFirst // a load that does not last explains this example alone
	})
	trial := newForeignTrial(thin(later, foreignExamples))
	if len(kept) > 0 && !(meanOf(trial.errors(kept)) > meanOf(trial.errors(nil))) {
		return kept, false
	}
	columns = trial.choose()
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

// withForeignAtStart returns the examples of a target with the foreign load that was first measured in each
// run. A prediction knows the load when a job starts, not how it changes afterwards. So changes
// during a run count as noise of the run. Only epoch times depend on the load.
func withForeignAtStart(target string, examples []Example) []Example {
	if target != schemas.TargetEpochTime {
		return examples
	}
	examples = slices.Clone(examples)
	for _, ratio := range []func(*schemas.Load) *schemas.Ratio{
		func(l *schemas.Load) *schemas.Ratio { return &l.ForeignCPURatio },
		func(l *schemas.Load) *schemas.Ratio { return &l.ForeignIOWaitRatio },
	} {
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

// foreignTrial measures how well columns of foreign load predict held-out runs.
type foreignTrial struct {
	examples []Example
	run      []int // number of the run of each example; the runs of a fold have numbers foreignFolds apart
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
		t.run = append(t.run, number(runs, cmp.Or(x.Job, fmt.Sprint("#", i)))) // without a job: an own run
		t.group = append(t.group, number(groups, fmt.Sprintf("%q %q %d %d", x.level(),
			x.Hardware.NodeType(), x.Features.BatchSize, x.Features.CPUs)))
	}
	return t
}

// choose selects the columns that clearly lower the held-out error, one after another. It is deterministic.
func (t *foreignTrial) choose() (chosen schemas.ForeignColumns) {
	var candidates schemas.ForeignColumns
	for _, name := range []string{schemas.ColumnForeignCPU, schemas.ColumnForeignIOWait} {
		if column, ok := t.column(name); ok {
			candidates = append(candidates, column)
		}
	}
	for len(candidates) > 0 {
		before := t.errors(chosen)
		best, lowest := -1, math.Inf(1)
		for i, c := range candidates {
			errors := t.errors(append(slices.Clone(chosen), c))
			if t.improves(errors, before) && meanOf(errors) < lowest {
				best, lowest = i, meanOf(errors)
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, candidates[best])
		candidates = slices.Delete(candidates, best, best+1)
	}
	return chosen
}

// column returns a column as the examples describe it; ok is false if too few know its value, or if it
// hardly varies among them.
func (t *foreignTrial) column(name string) (column schemas.ForeignColumn, ok bool) {
	column.Name = name
	runs := map[float64]map[int]bool{}
	var values []float64
	for i := range t.examples {
		r := column.Ratio(&t.examples[i].Features.Load)
		if !r.Known {
			continue
		}
		values = append(values, r.Value)
		if runs[r.Value] == nil {
			runs[r.Value] = map[int]bool{}
		}
		runs[r.Value][t.run[i]] = true
	}
	if len(runs) < 2 || float64(len(values)) < foreignKnownShare*float64(len(t.examples)) {
		return column, false
	}
	slices.Sort(values)
	column.Typical, column.Max = values[len(values)/2], values[len(values)-1]
	usual, most, others := 0., 0, map[int]bool{}
	for _, level := range slices.Sorted(maps.Keys(runs)) {
		if n := len(runs[level]); n > most {
			usual, most = level, n
		}
	}
	for level, of := range runs {
		if level != usual {
			maps.Copy(others, of)
		}
	}
	return column, most >= foreignRuns && len(others) >= foreignRuns
}

// errors returns for each example the absolute error of the logarithm of its time, predicted
// without its run: the mean of the other runs of its configuration, corrected for the load by least
// squares. It is NaN for an example without other runs.
func (t *foreignTrial) errors(columns schemas.ForeignColumns) []float64 {
	points, all := make([][]float64, len(t.examples)), make([]float64, len(t.examples))
	for i := range t.examples {
		x := &t.examples[i]
		points[i] = append(loadInputs(x, columns), math.Log(x.Value))
	}
	for fold := range foreignFolds {
		t.predict(fold, points, all)
	}
	return all
}

// predict sets the errors of the examples of a fold. A point holds the inputs and the logarithm of the time.
func (t *foreignTrial) predict(fold int, points [][]float64, errors []float64) {
	means, counts := map[int][]float64{}, map[int]float64{} // of the training examples, by configuration
	for i, point := range points {
		if g := t.group[i]; t.run[i]%foreignFolds != fold {
			if means[g] == nil {
				means[g] = make([]float64, len(point))
			}
			counts[g]++
			for k, v := range point {
				means[g][k] += (v - means[g][k]) / counts[g]
			}
		}
	}
	centered := func(i int) (inputs []float64, log float64) {
		row := slices.Clone(points[i])
		for k, mean := range means[t.group[i]] {
			row[k] -= mean
		}
		last := len(row) - 1
		return row[:last], row[last]
	}
	var rows [][]float64
	var logs []float64
	for i := range points {
		if t.run[i]%foreignFolds != fold {
			inputs, log := centered(i)
			rows, logs = append(rows, inputs), append(logs, log)
		}
	}
	if len(rows) == 0 {
		return
	}
	coefficients := leastsquares.Fit(rows, logs)
	for i := range points {
		switch {
		case t.run[i]%foreignFolds != fold:
		case means[t.group[i]] == nil:
			errors[i] = math.NaN()
		default:
			inputs, log := centered(i)
			errors[i] = math.Abs(log - leastsquares.Predict(coefficients, inputs))
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
		differences[run] = append(differences[run], errors[i]-others[i])
	}
	var means []float64
	for _, run := range slices.Sorted(maps.Keys(differences)) {
		if mean := meanOf(differences[run]); !math.IsNaN(mean) {
			means = append(means, mean)
		}
	}
	mean, squares := meanOf(means), 0.0
	for _, d := range means {
		squares += (d - mean) * (d - mean)
	}
	return mean+1.96*math.Sqrt(squares)/float64(len(means)) < 0
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
