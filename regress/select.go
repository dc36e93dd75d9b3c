package regress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
)

// SelectOptions select the families, methods and baselines that Select compares, and how.
type SelectOptions struct {
	// Families to compare; nil means all of them.
	Families []string
	// Methods to compare in addition to the Families. With an empty, non-nil Families only
	// these are compared.
	Methods []Method
	// Baselines to compare in addition to the linear model and the nearest configuration.
	Baselines []Baseline
	// Confidence, in (0, 1), of the bound whose pinball loss is compared; 0 means 0.95.
	Confidence float64
	// Transform of the target; empty means the logarithm for positive targets that span a factor
	// of 2 or more, otherwise none.
	Transform Transform
	// Folds of configurations; 0 means 5. They are assigned Shuffles times; 0 means 4, or 1 above
	// 1000 examples.
	Folds, Shuffles int
	// Seed of all random numbers.
	Seed uint64
	// MinExamples, MinSettings and Threads are as in ForestOptions.
	MinExamples, MinSettings, Threads int
	// Progress is called with the number of completed and planned fits, in order.
	Progress func(done, planned int)
}

func (o SelectOptions) resolve(d *Dataset) (SelectOptions, baseOptions, error) {
	s, err := resolveBaseOptions(o.Transform, o.Folds, o.MinExamples, o.MinSettings, o.Threads,
		o.Seed)
	if err != nil {
		return o, s, err
	}
	o.Confidence = cmp.Or(o.Confidence, 0.95)
	o.Folds, o.Threads, o.MinExamples, o.MinSettings = s.Folds, s.Threads, s.examples, s.settings
	if o.Shuffles == 0 {
		if o.Shuffles = 4; d.Len() > 1000 {
			o.Shuffles = 1
		}
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return o, s, fmt.Errorf("%w: confidence is %g, want a number between 0 and 1",
			ErrBadOptions, o.Confidence)
	}
	if o.Folds < 2 || o.Shuffles < 1 || o.Shuffles > 1000 {
		return o, s, fmt.Errorf("%w: %d folds and %d shuffles, want at least 2 and 1 to 1000",
			ErrBadOptions, o.Folds, o.Shuffles)
	}
	if o.Families == nil {
		o.Families = Families()
	}
	for _, f := range o.Families {
		if !slices.Contains(Families(), f) {
			return o, s, fmt.Errorf("%w: family is %q, want one of %q", ErrBadOptions, f,
				Families())
		}
	}
	return o, s, nil
}

// Select compares families and options by their held-out predictions. It returns the best, fitted
// on all examples and calibrated, with a report of the comparison.
//
// The best has the smallest pinball loss of the bound at the confidence: a bound should hold and be
// as low as possible. Within 2 % of it the smoother family wins, because it also predicts well
// between measured levels. A family whose error at left-out levels between others is less than half
// wins within 25 %.
//
// Equal examples in any order and equal options give the same choice and bytes. It returns ctx's
// error when ctx ends.
func Select(ctx context.Context, d *Dataset, o SelectOptions) (*Regressor, SelectReport, error) {
	r, report, err := selectRegressor(ctx, d, o)
	if err != nil {
		return nil, SelectReport{}, fmt.Errorf("select a regressor of %s: %w", d.TargetName, err)
	}
	return r, report, nil
}

func selectRegressor(
	ctx context.Context, d *Dataset, o SelectOptions,
) (*Regressor, SelectReport, error) {
	if err := d.Validate(); err != nil {
		return nil, SelectReport{}, err
	}
	o, s, err := o.resolve(d)
	if err != nil {
		return nil, SelectReport{}, err
	}
	if o.Transform == "" {
		o.Transform = transformOf(d.Target)
	}
	if d, err = d.prepare(o.Transform, s.examples, s.settings, o.Folds); err != nil {
		return nil, SelectReport{}, err
	}
	c := newComparison(d, o)
	if len(c.methods) == len(c.baselines()) {
		return nil, SelectReport{}, fmt.Errorf("%w: no family suits %d examples", ErrBadOptions,
			d.Len())
	}
	if err := c.run(ctx); err != nil {
		return nil, SelectReport{}, err
	}
	return c.finish(ctx)
}

// comparison scores methods and baselines on the same folds.
type comparison struct {
	d       *Dataset
	o       SelectOptions
	methods []*comparedMethod
	folds   [][]int // per shuffle
	done    *progressCounter
}

// comparedMethod is a method or a baseline with its results by shuffle.
type comparedMethod struct {
	method    *Method
	baseline  *Baseline
	transform Transform // of its predictions during the comparison
	results   []shuffleResult
}

// shuffleResult holds the out-of-fold predictions of one shuffle in the unit of the fit.
type shuffleResult struct {
	predicted []float64
	err       error
}

func newComparison(d *Dataset, o SelectOptions) *comparison {
	c := &comparison{d: d, o: o}
	var methods []Method
	for _, family := range o.Families {
		methods = append(methods, methodsOf(family, d)...)
	}
	methods = append(methods, o.Methods...)
	for _, m := range methods {
		c.methods = append(c.methods, &comparedMethod{method: &m, transform: o.Transform})
	}
	for _, b := range c.baselines() {
		c.methods = append(c.methods, &comparedMethod{baseline: &b, transform: None})
	}
	for s := range uint64(o.Shuffles) {
		c.folds = append(c.folds, d.folds(o.Folds, o.Seed+s))
	}
	for _, e := range c.methods {
		e.results = make([]shuffleResult, o.Shuffles)
	}
	c.done = newProgress(o.Progress, len(c.methods)*o.Shuffles+1)
	return c
}

func (c *comparison) baselines() []Baseline {
	return append([]Baseline{LinearBaseline(), NearestBaseline()}, c.o.Baselines...)
}

// run predicts every shuffle by every method, on as many goroutines as allowed, with one thread per
// fit.
func (c *comparison) run(ctx context.Context) error {
	type task struct {
		entry   *comparedMethod
		shuffle int
	}
	tasks := make(chan task, len(c.methods)*len(c.folds))
	for _, e := range c.methods {
		for s := range c.folds {
			tasks <- task{e, s}
		}
	}
	close(tasks)
	var workers sync.WaitGroup
	for range min(c.o.Threads, cap(tasks)) {
		workers.Go(func() {
			for t := range tasks {
				if ctx.Err() == nil {
					t.entry.results[t.shuffle] = c.predictShuffle(ctx, t.entry, t.shuffle)
					c.done.add(1)
				}
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

func (c *comparison) predictShuffle(
	ctx context.Context, e *comparedMethod, shuffle int,
) shuffleResult {
	fit := func(train *Dataset) (func(row []float64) float64, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e.baseline != nil {
			return e.baseline.Fit(train)
		}
		r, err := e.method.Fit(ctx, train, c.fastOptions())
		if err != nil {
			return nil, err
		}
		return r.raw(), nil
	}
	predicted, err := OutOfFold(c.d, c.folds[shuffle], fit)
	if i := slices.IndexFunc(predicted, func(y float64) bool {
		return !finite(y)
	}); err == nil && i >= 0 {
		err = fmt.Errorf("predicts %g", predicted[i])
	}
	return shuffleResult{predicted, err}
}

// fastOptions returns the options of a fit without calibration.
func (c *comparison) fastOptions() FitOptions {
	return FitOptions{
		Transform:   c.o.Transform,
		Seed:        c.o.Seed,
		Folds:       -1,
		MinExamples: 1,
		MinSettings: 1,
		Threads:     1,
	}
}

// finish fits the best method on all examples and writes the report.
func (c *comparison) finish(ctx context.Context) (*Regressor, SelectReport, error) {
	report := SelectReport{
		Target:     c.d.TargetName,
		Unit:       c.d.TargetUnit,
		Examples:   c.d.Len(),
		Settings:   c.d.Settings(),
		Confidence: c.o.Confidence,
		Transform:  c.o.Transform,
		Folds:      foldCount(c.folds[0]),
		Shuffles:   c.o.Shuffles,
	}
	judged := make(map[*comparedMethod]Judged)
	var failures []error
	for _, e := range c.methods {
		j := c.judge(e)
		if e.baseline != nil {
			report.Baselines = append(report.Baselines, j)
			continue
		}
		report.Candidates = append(report.Candidates, j)
		if j.Error != "" {
			failures = append(failures, fmt.Errorf("%s: %s", j.Name, j.Error))
		} else {
			judged[e] = j
		}
	}
	slices.SortStableFunc(report.Candidates, func(a, b Judged) int { return compareLoss(a, b) })
	if err := c.checkLevels(ctx, &report); err != nil {
		return nil, report, err
	}
	best := c.best(judged)
	if best == nil {
		return nil, report, errors.Join(failures...)
	}
	best = c.betterBetweenLevels(best, judged, errorsBetween(report.Levels))
	report.Winner = best.method.Name
	r, err := best.method.Fit(ctx, c.d, FitOptions{
		Transform:   c.o.Transform,
		Seed:        c.o.Seed,
		Folds:       c.o.Folds,
		MinExamples: c.o.MinExamples,
		MinSettings: c.o.MinSettings,
		Threads: min(c.o.Threads,
			runtime.GOMAXPROCS(0)),
	})
	if err != nil {
		return nil, report, err
	}
	c.done.add(1)
	c.heldOut(&report, best)
	return r, report, nil
}

// tieMargin is the relative difference in pinball loss up to which methods tie.
const tieMargin = 0.02

// smoothness ranks families with tied losses: a formula is smooth between and outside the measured
// levels, trees are step functions.
var smoothness = []string{FamilyGaussian, FamilyLaw, FamilyLawTrees, FamilyBoosting, FamilyForest}

// best returns the method with the smallest loss, or the smoothest method that ties with it; nil
// if there is none.
func (c *comparison) best(judged map[*comparedMethod]Judged) *comparedMethod {
	least := math.Inf(1)
	for _, j := range judged {
		least = min(least, j.Pinball.Value)
	}
	var best *comparedMethod
	rank := func(e *comparedMethod) int { return slices.Index(smoothness, e.method.Family) }
	for _, e := range c.methods { // in a fixed order, unlike the map
		j, ok := judged[e]
		if !ok || j.Pinball.Value > least*(1+tieMargin) {
			continue
		}
		if best == nil || rank(e) < rank(best) || rank(e) == rank(best) &&
			j.Pinball.Value < judged[best].Pinball.Value {
			best = e
		}
	}
	return best
}

// betweenLevelsMargin is the relative increase of pinball loss that is accepted for a family whose
// error between levels is less than half. On some fifty runs the assignment of folds changes the
// loss by as much, and users also request configurations between measured ones.
const betweenLevelsMargin = 0.25

// betterBetweenLevels returns the best method, or one that is clearly better at levels that were
// left out.
func (c *comparison) betterBetweenLevels(
	best *comparedMethod, judged map[*comparedMethod]Judged, misses map[string]float64,
) *comparedMethod {
	most, known := misses[best.method.Name]
	if !known {
		return best
	}
	choice, loss := best, judged[best].Pinball.Value*(1+betweenLevelsMargin)
	for _, e := range c.methods {
		if j, ok := judged[e]; ok && j.Pinball.Value <= loss {
			if miss, known := misses[e.method.Name]; known && miss < most/2 {
				choice, loss = e, j.Pinball.Value
			}
		}
	}
	return choice
}

// errorsBetween returns the mean absolute error of each method at left-out levels between others.
func errorsBetween(levels []LevelCheck) map[string]float64 {
	sums, counts := make(map[string]float64), make(map[string]float64)
	for _, l := range levels {
		if l.Between && l.MAPE >= 0 {
			sums[l.Method] += l.MAPE * float64(l.Count)
			counts[l.Method] += float64(l.Count)
		}
	}
	for method, count := range counts {
		sums[method] /= count
	}
	return sums
}

func compareLoss(a, b Judged) int {
	if (a.Error == "") != (b.Error == "") {
		return cmp.Compare(len(a.Error), len(b.Error))
	}
	return cmp.Compare(a.Pinball.Value, b.Pinball.Value)
}
