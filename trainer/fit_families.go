package trainer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"courier/regress"
	"courier/schemas"
)

// timeFamilies are compared for the targets that are times: the paper's forest, and the laws, which
// interpolate and extrapolate correctly. A Gaussian process predicts as well, but
// a fit takes minutes for some thousand epochs.
var timeFamilies = []string{regress.FamilyForest, regress.FamilyLaw, regress.FamilyLawTrees}

// startupExamples is the minimum number of examples of a start-up time: each run has only one, and
// most depend on little but the program.
const startupExamples = 10

// Fit fits the regressor of a target with the method of the options.
func Fit(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	return fitAfter(ctx, target, examples, nil, o)
}

// Refit fits like Fit, after a champion with the manifest before, as the service does.
func Refit(
	ctx context.Context, target string, examples []Example, before *regress.Manifest, o Options,
) (*regress.Regressor, error) {
	return fitAfter(ctx, target, examples, before, o)
}

// fitAfter fits like Fit. With MethodEvidence it updates the state in before, the manifest of the
// champion; nil means that there is no champion.
func fitAfter(
	ctx context.Context, target string, examples []Example, before *regress.Manifest, o Options,
) (r *regress.Regressor, err error) {
	o = o.withDefaults()
	examples = thin(examples, o.Examples)
	if o.Method == MethodEvidence {
		r, err = fitEvidence(ctx, target, examples, before, o)
	} else {
		r, err = fitFamilies(ctx, target, examples, o)
	}
	if err != nil {
		return nil, err
	}
	complete(r, examples, o)
	return r, nil
}

// complete writes the program version and the time span of the examples into a manifest.
func complete(r *regress.Regressor, examples []Example, o Options) {
	r.Manifest.Version = o.Version
	r.Manifest.Examples.First, r.Manifest.Examples.Last = times(examples)
}

// fitFamilies fits one regressor for all models. Times are fitted on their logarithm, by the family
// that predicts held-out configurations best at the default confidence; accuracies by the paper's forest.
// Epoch times have columns of foreign load if these lower the held-out error.
func fitFamilies(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	d := Dataset(target, examples, foreignColumns(ctx, target, examples)...)
	progress := func(done, planned int) {}
	if o.Progress != nil {
		progress = func(done, planned int) { o.Progress(target, done, planned) }
	}
	if target == schemas.TargetAccuracy {
		return regress.FitForest(ctx, d, regress.ForestOptions{
			Trees:     o.Trees,
			MaxDepth:  o.Depth,
			Criterion: regress.Absolute,
			Bootstrap: true,
			Seed:      o.Seed,
			Threads:   o.Threads,
			Progress:  progress,
		})
	}

	s := regress.SelectOptions{
		Families:   timeFamilies,
		Transform:  regress.Log,
		Confidence: schemas.DefaultConfidence,
		Shuffles:   1,
		Seed:       o.Seed,
		Threads:    o.Threads,
		Progress:   progress,
	}
	if target == schemas.TargetStartup {
		s.MinExamples = startupExamples
	}
	r, _, err := regress.Select(ctx, d, s)
	return r, err
}

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
	// explainedSlack is how much more held-out error a fit on examples of all times may have than a
	// fit on examples corrected for drift: its examples are measured with and without the foreign
	// load.
	explainedSlack = 0.05
)

// foreignColumns selects the columns of foreign load that clearly lower the held-out error. Only
// the epoch time has any. The selection is deterministic.
func foreignColumns(
	ctx context.Context, target string, examples []Example,
) (chosen []schemas.ForeignColumn) {
	if target != schemas.TargetEpochTime {
		return nil
	}
	examples = thin(examples, foreignExamples)
	var candidates []schemas.ForeignColumn
	for _, c := range []schemas.Column{schemas.ColumnForeignCPU, schemas.ColumnForeignIOWait} {
		if column, ok := foreignColumn(c, examples); ok {
			candidates = append(candidates, column)
		}
	}
	if len(candidates) == 0 {
		return nil
	}

	lowest := heldOut(ctx, examples, nil)
	for range candidates { // forward selection
		var best []schemas.ForeignColumn
		bestErrors := lowest
		for _, c := range candidates {
			if slices.Contains(chosen, c) {
				continue
			}
			with := append(slices.Clone(chosen), c)
			errors := heldOut(ctx, examples, with)
			if improves(errors, lowest, examples) && meanOf(errors) < meanOf(bestErrors) {
				best, bestErrors = with, errors
			}
		}
		if best == nil {
			break
		}
		chosen, lowest = best, bestErrors
	}
	return chosen
}

// chooseForeign selects the columns of foreign load for a fit by evidence, and reports whether they
// differ from the previous ones. Columns are kept, with their typical values, unless they raise the
// held-out error: each change defines other configurations, which are fitted from the start.
func chooseForeign(
	ctx context.Context, target string, examples []Example, before *regress.Manifest,
) (columns []schemas.ForeignColumn, isNew bool) {
	fleeting := func(c schemas.ForeignColumn) bool { return !lasts(c.Column, examples) }
	kept := foreignOf(before)
	atStart := withForeignAtStart(target, examples)
	if len(kept) > 0 && !slices.ContainsFunc(kept, fleeting) {
		sample := thin(atStart, foreignExamples)
		with, without := heldOut(ctx, sample, kept), heldOut(ctx, sample, nil)
		if with == nil || without == nil || meanOf(with) <= meanOf(without) {
			return kept, false
		}
	}

	columns = slices.DeleteFunc(foreignColumns(ctx, target, atStart), fleeting)
	return columns, len(columns) > 0 || len(kept) > 0
}

// lasts reports whether a foreign load lasts, that is, whether the first value of a run predicts
// the later ones, with a mean squared error of at most lastingShare of the error for independent
// values. It returns false if no run has several values.
func lasts(c schemas.Column, examples []Example) bool {
	type runOfJob struct {
		job string
		run uint32
	}
	ordered := slices.Clone(examples)
	slices.SortStableFunc(ordered, func(a, b Example) int { return a.At.Compare(b.At) })

	first := map[runOfJob]float64{}
	squares, n := 0.0, 0.0
	var values []float64
	for i := range ordered {
		x := &ordered[i]
		r := c.Foreign(&x.Features.Load)
		if x.Job == "" || !r.Known {
			continue
		}
		key := runOfJob{x.Job, x.Run}
		begin, found := first[key]
		if !found {
			first[key] = r.Value
		} else {
			squares += (r.Value - begin) * (r.Value - begin)
			n++
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

// foreignOf returns the columns of foreign load of a regressor.
func foreignOf(m *regress.Manifest) (columns []schemas.ForeignColumn) {
	if m == nil {
		return nil
	}
	for _, f := range m.Features {
		for _, c := range []schemas.Column{schemas.ColumnForeignCPU, schemas.ColumnForeignIOWait} {
			if f.Name == c.String() {
				columns = append(columns, schemas.ForeignColumn{
					Column:  c,
					Typical: f.Typical,
					Max:     f.Max,
				})
			}
		}
	}
	return columns
}

// foreignColumn returns a column as the examples describe it; ok is false if too few know its
// value, or if it hardly varies among them.
func foreignColumn(
	c schemas.Column, examples []Example,
) (column schemas.ForeignColumn, ok bool) {
	runs := map[float64]map[string]bool{}
	all, known := 0.0, 0.0
	var values []float64
	for i := range examples {
		x := &examples[i]
		all += x.Weight
		r := c.Foreign(&x.Features.Load)
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
	column = schemas.ForeignColumn{
		Column: c, Typical: values[len(values)/2], Max: values[len(values)-1],
	}
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

// heldOut returns for each example the absolute error of the logarithm of its time, predicted by a
// law that was fitted without the example's run; nil if no law can be fitted.
func heldOut(ctx context.Context, examples []Example, columns []schemas.ForeignColumn) []float64 {
	d := Dataset(schemas.TargetEpochTime, examples, columns...)
	d.Group = runGroups(examples)
	folds := regress.Folds(d.Group, foreignFolds, 1)
	if folds == nil {
		return nil
	}
	o := regress.LawOptions{
		Transform: regress.Log, Folds: -1, MinExamples: 1, MinSettings: 1, Threads: 1,
	}
	predicted, err := regress.OutOfFold(d, folds, func(train *regress.Dataset) (
		func(row []float64) float64, error,
	) {
		r, err := regress.FitLaw(ctx, train, o)
		if err != nil {
			return nil, err
		}
		p, err := regress.Compile(r)
		if err != nil {
			return nil, err
		}
		return func(row []float64) float64 {
			point, err := p.Predict(row)
			if err != nil {
				return math.NaN()
			}
			return point.Value
		}, nil
	})
	if err != nil {
		return nil
	}
	errors := make([]float64, len(predicted))
	for i, y := range predicted {
		if errors[i] = math.Abs(math.Log(y / d.Target[i])); math.IsNaN(errors[i]) {
			return nil
		}
	}
	return errors
}

// runGroups numbers the runs of examples.
func runGroups(examples []Example) []int {
	number, groups := map[string]int{}, make([]int, len(examples))
	for i := range examples {
		run := runOf(examples, i)
		if _, known := number[run]; !known {
			number[run] = len(number)
		}
		groups[i] = number[run]
	}
	return groups
}

// improves reports whether errors are lower than others of the same examples, by more than the
// choice of runs explains.
func improves(errors, others []float64, examples []Example) bool {
	if errors == nil || others == nil || !(meanOf(errors) <= (1-foreignGain)*meanOf(others)) {
		return false
	}
	difference, err := regress.Paired(errors, others, runGroups(examples), 1)
	return err == nil && difference.High < 0
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// foreignExplains reports whether columns of foreign load explain a drift: with them, a fit on the
// examples of all times predicts the current examples as well as a fit on examples that were
// corrected for the drift. Scaling old times to the current level would hide the effect of the
// foreign load.
func foreignExplains(ctx context.Context, all, corrected []Example, drifts []knownDrift) bool {
	columns := foreignColumns(ctx, schemas.TargetEpochTime, all)
	if len(columns) == 0 {
		return false
	}
	current := func(examples []Example, columns []schemas.ForeignColumn) (sum, n float64) {
		examples = thin(examples, foreignExamples)
		for i, e := range heldOut(ctx, examples, columns) {
			if x := &examples[i]; !anyStale(drifts, x.At, x.level(), x.Nodes) {
				sum, n = sum+e, n+1
			}
		}
		return sum, n
	}
	sum, n := current(all, columns)
	others, m := current(corrected, foreignColumns(ctx, schemas.TargetEpochTime, corrected))
	return n > 0 && m > 0 && sum/n <= (1+explainedSlack)*others/m
}

// currentExamples returns the examples of a target as they would be measured now: stale examples
// are corrected for their drift, unless foreign load explains the drift.
func (t *Trainer) currentExamples(ctx context.Context, target string, all []Example) []Example {
	if target != schemas.TargetEpochTime {
		return all
	}
	t.mu.Lock()
	drifts := slices.Clone(t.drifts)
	t.mu.Unlock()
	if len(drifts) == 0 || foreignExplains(ctx, all, correctStale(all, drifts), drifts) {
		return all
	}
	return correctStale(all, drifts)
}
