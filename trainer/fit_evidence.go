package trainer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// evidenceRuns groups the examples of a target into runs, the unit of package evidence: the epochs
// of one run of a job with one configuration and one load.
func evidenceRuns(
	target string, examples []Example, foreign []schemas.ForeignColumn,
) []evidence.Run {
	type key struct {
		job string
		run uint32
		evidence.Configuration
	}
	numbers := map[key]int{}
	var runs []evidence.Run
	for i := range examples {
		x := &examples[i]
		k := key{x.Job, x.Run, configurationOf(target, x, foreign)}
		if x.Job == "" {
			k.job = fmt.Sprint("example ", i)
		}
		n, found := numbers[k]
		if !found {
			n = len(runs)
			numbers[k] = n
			runs = append(runs, evidence.Run{
				ID:            fmt.Sprint(k.job, " ", n),
				Job:           fmt.Sprintf("%s/%d", k.job, k.run),
				Configuration: k.Configuration,
				StartedAt:     x.begin(),
				EndedAt:       x.EndedAt,
				Node:          firstOf(x.Nodes),
			})
		}
		addExample(target, &runs[n], x)
	}
	return runs
}

// configurationOf returns the features that the predictions of a target depend on. Of the foreign
// loads it includes the loads with a column.
func configurationOf(
	target string, x *Example, foreign []schemas.ForeignColumn,
) evidence.Configuration {
	c := evidence.Configuration{
		Model: x.Model, Dataset: x.Dataset,
		BatchSize: int(x.Features.BatchSize), CPUs: int(x.Features.CPUs),
	}
	if target == schemas.TargetAccuracy {
		c.CPUs = 1
		return c
	}
	c.NodeType = x.Hardware.NodeType()
	if target == schemas.TargetEpochTime {
		c.NodeLoad = evidence.NodeLoad{
			ConcurrentJobs:   x.Features.Load.ConcurrentJobs,
			ProcessesPerCore: x.Features.Load.ProcessesPerCore,
		}
		c.ForeignCPURatio, c.ForeignIOWaitRatio = schemas.ForeignRatios(&x.Features.Load, foreign)
	}
	return c.Banded()
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// begin returns the begin of the epoch, run or start-up that the example measures.
func (x *Example) begin() time.Time {
	return x.At.Add(-time.Duration(x.Seconds * float64(time.Second)))
}

// addExample adds an example to its run.
func addExample(target string, r *evidence.Run, x *Example) {
	switch target {
	case schemas.TargetStartup:
		r.StartupSeconds = x.Value
	case schemas.TargetAccuracy:
		r.Epochs = append(r.Epochs, evidence.EpochRecord{
			Number: int(x.Features.EpochsDone), Accuracy: x.Value, HasAccuracy: true,
		})
	default:
		if x.WholeRun {
			r.MeanSeconds, r.EpochCount = x.Value, int(max(1, x.Features.EpochsDone))
			return
		}
		r.Epochs = append(r.Epochs, evidence.EpochRecord{
			Number:  int(x.Features.EpochsDone),
			Seconds: x.Value,
		})
	}
}

// fitEvidence fits a target on the runs of each model. before is the manifest of the champion,
// whose state is updated; nil if there is none.
func fitEvidence(
	ctx context.Context, target string, examples []Example, before *regress.Manifest, o Options,
) (*regress.Regressor, error) {
	foreign, isNew := chooseForeign(ctx, target, examples, before)
	examples = withForeignAtStart(target, examples)
	runs, state := evidenceRuns(target, examples, foreign), evidenceOf(before)
	if isNew {
		state = nil // its configurations have other columns
	}
	state, err := state.Update(ctx, runs, evidence.Options{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if len(state.Subjects) == 0 {
		return nil, fmt.Errorf("fit %s: %w: no runs", target, regress.ErrTooFewExamples)
	}
	var evaluations json.RawMessage
	if state.Corrected && before != nil {
		evaluations = before.Evaluations // no model was fitted again
	}
	return newHierarchyRegressor(ctx, target, examples, foreign, state, evaluations, o)
}

// withForeignAtStart returns the examples with the foreign load that was first measured in each
// run. A prediction knows the load when a job starts, not how it changes afterwards. So changes
// during a run count as noise of the run.
func withForeignAtStart(target string, examples []Example) []Example {
	if target != schemas.TargetEpochTime {
		return examples
	}
	type runOfJob struct {
		job string
		run uint32
	}
	type firstValue struct {
		at    time.Time
		ratio schemas.Ratio
	}
	cpu, ioWait := map[runOfJob]firstValue{}, map[runOfJob]firstValue{}
	note := func(first map[runOfJob]firstValue, x *Example, r schemas.Ratio) {
		key := runOfJob{x.Job, x.Run}
		if f, found := first[key]; r.Known && (!found || x.At.Before(f.at)) {
			first[key] = firstValue{x.At, r}
		}
	}
	for i := range examples {
		if x := &examples[i]; x.Job != "" {
			note(cpu, x, x.Features.Load.ForeignCPURatio)
			note(ioWait, x, x.Features.Load.ForeignIOWaitRatio)
		}
	}

	examples = slices.Clone(examples)
	for i := range examples {
		x := &examples[i]
		key := runOfJob{x.Job, x.Run}
		if f, found := cpu[key]; found {
			x.Features.Load.ForeignCPURatio = f.ratio
		}
		if f, found := ioWait[key]; found {
			x.Features.Load.ForeignIOWaitRatio = f.ratio
		}
	}
	return examples
}

// newHierarchyRegressor returns a regressor of a state. Its file holds the medians as a tree, so
// any reader of such files can predict them; its manifest holds the distribution. Empty evaluations
// are computed.
func newHierarchyRegressor(
	ctx context.Context, target string, examples []Example, foreign []schemas.ForeignColumn,
	state *evidence.ServedHierarchy, evaluations json.RawMessage, o Options,
) (*regress.Regressor, error) {
	runs := evidenceRuns(target, examples, foreign)
	served := servedState{target: target, foreign: foreign}

	var err error
	if served.predictor, served.corrections, err = state.Compile(); err != nil {
		return nil, err
	}
	r, err := served.tree(ctx, examples, o)
	if err != nil {
		return nil, err
	}
	if r.Manifest.Hierarchy, err = json.Marshal(state); err != nil {
		return nil, fmt.Errorf("encode the hierarchy of %s: %w", target, err)
	}
	if len(evaluations) == 0 {
		all, err := evidence.Evaluate(ctx, state.Adjusted(runs), state.Hierarchy)
		if err != nil {
			return nil, err
		}
		if evaluations, err = json.Marshal(all); err != nil {
			return nil, fmt.Errorf("encode the evaluations of %s: %w", target, err)
		}
	}
	var scored []evidence.Evaluation
	if err := json.Unmarshal(evaluations, &scored); err != nil {
		return nil, fmt.Errorf("read the evaluations of %s: %w", target, err)
	}
	r.Manifest.Evaluations, r.Manifest.Scores = evaluations, heldOutScores(target, scored)
	r.Manifest.Family = regress.FamilyHierarchy
	r.Manifest.Examples.Count, r.Manifest.Examples.Settings = len(examples), configurations(runs)
	return r, nil
}

// configurations counts the distinct configurations of runs.
func configurations(runs []evidence.Run) int {
	seen := map[evidence.Configuration]bool{}
	for i := range runs {
		seen[runs[i].Configuration] = true
	}
	return len(seen)
}

// heldOutScores averages the held-out errors of runs of measured configurations, one weight per
// run; nil if no run could be held out. Errors of accuracies are absolute, errors of times
// relative.
func heldOutScores(target string, all []evidence.Evaluation) *regress.Scores {
	runs, sum := 0, 0.0
	for i := range all {
		n, e := all[i].Measured.Runs, all[i].Measured.RelativeError
		if target == schemas.TargetAccuracy {
			n, e = all[i].AccuracyMeasured.Runs, all[i].AccuracyMeasured.AbsoluteError
		}
		runs, sum = runs+n, sum+float64(n)*e
	}
	if runs == 0 {
		return nil
	}
	none := regress.Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
	held := regress.Estimate{Value: sum / float64(runs), Low: math.NaN(), High: math.NaN()}
	s := &regress.Scores{
		Examples:  runs,
		MSE:       none,
		MAE:       none,
		R2:        none,
		MAPE:      held,
		MedianAPE: none,
	}
	if target == schemas.TargetAccuracy {
		s.MAE, s.MAPE = held, none
	}
	return s
}

// evidenceOf returns the state in a manifest of family hierarchy; nil for other families.
func evidenceOf(m *regress.Manifest) *evidence.ServedHierarchy {
	if m == nil || m.Family != regress.FamilyHierarchy {
		return nil
	}
	var s evidence.ServedHierarchy
	if json.Unmarshal(m.Hierarchy, &s) != nil || s.Hierarchy == nil {
		return nil // an advisor also refuses it; the next fit does not update it
	}
	return &s
}

// servedState predicts a target as an advisor does.
type servedState struct {
	target      string
	foreign     []schemas.ForeignColumn
	predictor   *evidence.Predictor
	corrections *evidence.Corrections
}

// tree returns a tree of the medians at the configurations of the examples, and at batch sizes a
// quarter octave apart between them.
func (s *servedState) tree(
	ctx context.Context, examples []Example, o Options,
) (*regress.Regressor, error) {
	d := Dataset(s.target, s.grid(examples), s.foreign...)
	transform := regress.Log
	if s.target == schemas.TargetAccuracy {
		transform = regress.None
	}
	return regress.FitForest(ctx, d, regress.ForestOptions{
		Trees: 1, MaxDepth: 64, Criterion: regress.Squared, Transform: transform,
		Folds: -1, MinExamples: 1, MinSettings: 1, Seed: o.Seed, Threads: o.Threads,
	})
}

// grid returns an example with the served median for each distinct configuration of the examples,
// and for batch sizes a quarter octave apart within the range of a model on a dataset.
func (s *servedState) grid(examples []Example) []Example {
	type gridPoint struct {
		configuration evidence.Configuration
		epochs        uint32
	}
	seen := map[gridPoint]bool{}
	smallest, largest := map[string]uint32{}, map[string]uint32{}
	for i := range examples {
		x := &examples[i]
		level := x.level()
		if b := x.Features.BatchSize; largest[level] == 0 {
			smallest[level], largest[level] = b, b
		} else {
			smallest[level], largest[level] = min(smallest[level], b), max(largest[level], b)
		}
	}
	var all []Example
	add := func(x Example) {
		at := gridPoint{configurationOf(s.target, &x, s.foreign), 0}
		if s.target == schemas.TargetAccuracy {
			at.epochs = x.Features.EpochsDone
		}
		if seen[at] {
			return
		}
		seen[at] = true
		if median, known := s.median(at.configuration, int(at.epochs)); known {
			x.Value, x.Weight = median, 1
			all = append(all, x)
		}
	}
	for i := range examples {
		add(examples[i])
	}
	for i := range examples {
		x := examples[i]
		low, high := math.Log2(float64(smallest[x.level()])), math.Log2(float64(largest[x.level()]))
		for q := math.Ceil(4 * low); q < 4*high; q++ {
			x.Features.BatchSize = uint32(math.Round(math.Exp2(q / 4)))
			add(x)
		}
	}
	return all
}

// median returns the served median at a configuration; an accuracy is that after some epochs.
func (s *servedState) median(c evidence.Configuration, epochs int) (median float64, known bool) {
	switch s.target {
	case schemas.TargetStartup:
		d := s.predictor.Startup(c)
		return d.Median(), d.Known()
	case schemas.TargetAccuracy:
		a := s.predictor.Accuracy(c, epochs)
		return a.Median, a.Known
	}
	e := s.predictor.Epochs(s.corrections, c)
	return math.Exp(e.Location), e.Known()
}
