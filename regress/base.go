package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
)

// baseFunction predicts in the unit of the fit, before any tree: a law or a Gaussian process. It is
// part of the manifest; the trees of the file correct it.
type baseFunction interface {
	predict(row []float64) float64
}

// baseFit is the result of fitting a regressor with a base function. It may have no trees.
type baseFit struct {
	base     baseFunction
	law      *Law
	gaussian *Gaussian
	trees    ensemble
}

func (f *baseFit) predict(row []float64) float64 {
	return f.base.predict(row) + f.trees.predict(row)
}

// baseOptions are the options of all families with a base function.
type baseOptions struct {
	Transform                 Transform
	Folds, examples, settings int
	Threads                   int
	Seed                      uint64
	progress                  func(done, planned int)
}

func resolveBaseOptions(
	t Transform, folds, examples, settings, threads int, seed uint64,
) (baseOptions, error) {
	s := baseOptions{
		Transform: cmp.Or(t, None),
		Folds:     cmp.Or(folds, defaultFolds),
		examples:  cmp.Or(examples, minExamples),
		settings:  cmp.Or(settings, minSettings),
		Threads: cmp.Or(threads,
			max(1, runtime.GOMAXPROCS(0)-1)),
		Seed: seed,
	}
	switch {
	case s.Transform != None && s.Transform != Log:
		return s, fmt.Errorf("%w: transform is %q", ErrBadOptions, s.Transform)
	case s.Folds == 1:
		return s, fmt.Errorf("%w: folds is 1, want 2 or more, or less than 0 for none",
			ErrBadOptions)
	case s.examples < 1 || s.settings < 1 || s.Threads < 1 || s.Threads > 1024:
		return s, fmt.Errorf("%w: min_examples %d, min_settings %d, threads %d", ErrBadOptions,
			s.examples, s.settings, s.Threads)
	}
	return s, nil
}

// fitBase fits all examples, and again without each fold of configurations for the calibration.
func fitBase(
	ctx context.Context, d *Dataset, s baseOptions, fit func(train *Dataset) (baseFit, error),
) (*Regressor, error) {
	sorted, err := d.prepare(s.Transform, s.examples, s.settings, s.Folds)
	if err != nil {
		return nil, err
	}
	folds := sorted.folds(s.Folds, s.Seed)
	few := sorted.thinned()
	cases := few.levelCases()
	if folds == nil {
		cases = nil
	}
	done := newProgress(s.progress, 1+foldCount(folds)+len(cases))
	whole, err := fit(sorted)
	if err != nil {
		return nil, err
	}
	done.add(1)
	r := &Regressor{ensemble: whole.trees, Manifest: describe(sorted, s.Transform)}
	if r.trees == nil {
		r.trees = []tree{{leaves: []treeLeaf{{weight: float64(sorted.Len()), count: sorted.Len()}}}}
	}
	r.Manifest.Law, r.Manifest.Gaussian = whole.law, whole.gaussian
	if folds == nil {
		return r, ctx.Err()
	}
	again := func(train *Dataset) (func(row []float64) float64, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part, err := fit(train)
		done.add(1)
		return func(row []float64) float64 { return bounded(part.predict(row), s.Transform) }, err
	}
	predicted, err := OutOfFold(sorted, folds, again)
	if err != nil {
		return nil, err
	}
	r.Manifest.calibrate(sorted, predicted, folds, s.Seed)
	return r, r.Manifest.leaveLevelsOut(ctx, few, cases, again)
}

// bounded limits the value of a formula to the range whose inverse is finite and above 0.
func bounded(y float64, t Transform) float64 {
	limit := math.MaxFloat64
	if t == Log {
		limit = 700 // exp(700) is 1e304
	}
	return min(max(y, -limit), limit)
}

// base returns the function that the trees of a regressor correct; nil for trees alone.
func (m *Manifest) base() baseFunction {
	switch {
	case m.Gaussian != nil:
		return m.Gaussian
	case m.Law != nil:
		return m.Law
	}
	return nil
}

// checkBase checks the base function of a manifest.
func (m *Manifest) checkBase() error {
	if m.Gaussian != nil && m.Law != nil {
		return fmt.Errorf("law and gaussian are both present, want at most one")
	}
	if m.Law != nil {
		return m.Law.check(m.Features)
	}
	if m.Gaussian != nil {
		return m.Gaussian.check(m.Features)
	}
	return nil
}

// correctedForm predicts by a base function and the trees that correct it.
type correctedForm struct {
	base      baseFunction
	trees     form
	transform Transform
}

func (c *correctedForm) predict(row []float64) float64 {
	return c.transform.invert(bounded(c.base.predict(row)+c.trees.predict(row), c.transform))
}

// raw returns a prediction function in the unit of the fit, for a regressor that is not compiled.
func (r *Regressor) raw() func(row []float64) float64 {
	base := r.Manifest.base()
	if base == nil {
		return r.ensemble.predict
	}
	return func(row []float64) float64 {
		return bounded(base.predict(row)+r.ensemble.predict(row), r.Manifest.Transform)
	}
}

// slopes tests the monotonicity of functions. It walks along each feature with a monotone sign,
// from a quarter range below the examples to a quarter range above, at rows of examples and at rows
// mixed from their values.
type slopes struct {
	d     *Dataset
	walks []walkLine
}

// walkLine is a row in which one feature takes the values of steps in turn.
type walkLine struct {
	feature, sign int
	row, steps    []float64
}

const (
	walkSteps = 25
	walkRows  = 96
)

func newSlopes(d *Dataset) *slopes {
	s := &slopes{d: d}
	random := stream(3)
	for f, feature := range d.Features {
		if feature.Monotone == 0 || constant(d.Columns[f]) {
			continue
		}
		steps := stepsOf(d.Columns[f])
		for k := range 2 * walkRows {
			row := d.Row(k*max(1, d.Len()/walkRows)%d.Len(), nil)
			if k >= walkRows {
				for g := range row {
					row[g] = d.Columns[g][random.below(d.Len())]
				}
			}
			s.walks = append(s.walks, walkLine{f, feature.Monotone, row, steps})
		}
	}
	return s
}

// stepsOf returns evenly spaced values. Values of a positive feature are spaced by ratio.
func stepsOf(column []float64) []float64 {
	low, high := slices.Min(column), slices.Max(column)
	steps := make([]float64, walkSteps)
	for i := range steps {
		at := 1.5*float64(i)/(walkSteps-1) - 0.25
		if steps[i] = low + (high-low)*at; low > 0 {
			steps[i] = low * math.Pow(high/low, at)
		}
	}
	return steps
}

// firstWrong returns a feature along which a function violates its monotone sign; -1 if there is
// none.
func (s *slopes) firstWrong(b baseFunction) int {
	for _, w := range s.walks {
		last := 0.0
		for i, x := range w.steps {
			w.row[w.feature] = x
			y := b.predict(w.row)
			if i > 0 && float64(w.sign)*(y-last) < -1e-9*(1+math.Abs(y)) {
				return w.feature
			}
			last = y
		}
	}
	return -1
}

// wrongStep is a step along a walk that violates a monotone sign.
type wrongStep struct {
	from, to []float64 // rows
	by       float64
}

// worst returns the steps with the largest violations, one per walk and at most count.
func (s *slopes) worst(b baseFunction, count int) []wrongStep {
	var all []wrongStep
	for _, w := range s.walks {
		last, size := 0.0, 0.0
		var worst wrongStep
		for i, x := range w.steps {
			w.row[w.feature] = x
			y := b.predict(w.row)
			size = max(size, math.Abs(y))
			if by := float64(w.sign) * (last - y); i > 0 && by > worst.by && by > 1e-6*(1+size) {
				worst = wrongStep{slices.Clone(w.row), slices.Clone(w.row), by}
				worst.from[w.feature] = w.steps[i-1]
			}
			last = y
		}
		if worst.by > 0 {
			all = append(all, worst)
		}
	}
	slices.SortStableFunc(all, func(a, b wrongStep) int { return cmp.Compare(b.by, a.by) })
	return all[:min(count, len(all))]
}

// share returns the largest factor, 0 to 1, by which a correction can be added to a monotone trend
// without violating its sign.
func (s *slopes) share(trend, correction baseFunction) float64 {
	share := 1.0
	for _, w := range s.walks {
		lastT, lastC := 0.0, 0.0
		for i, x := range w.steps {
			w.row[w.feature] = x
			t, c := trend.predict(w.row), correction.predict(w.row)
			up, turn := float64(w.sign)*(t-lastT), float64(w.sign)*(c-lastC)
			if i > 0 && up+share*turn < 0 {
				share = max(0, min(share, -up/turn))
			}
			lastT, lastC = t, c
		}
	}
	return share
}
