package regress

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Law is a formula: Intercept plus the sum of Coefficients times Terms.
type Law struct {
	Inputs []Input `json:"inputs"`
	// Terms are products of inputs, by index.
	Terms        [][]int   `json:"terms"`
	Coefficients []float64 `json:"coefficients"`
	Intercept    float64   `json:"intercept"`
	// Ridge is the penalty on coefficients, in variances of the inputs per example.
	Ridge float64 `json:"ridge"`
}

// predict returns a value in the unit of the fit.
func (l *Law) predict(row []float64) float64 {
	var values [maxInputs]float64
	fill(l.Inputs, row, &values)
	return l.at(&values)
}

func (l *Law) at(values *[maxInputs]float64) float64 {
	y := l.Intercept
	for k, term := range l.Terms {
		y += l.Coefficients[k] * product(term, values)
	}
	return y
}

func product(term []int, values *[maxInputs]float64) float64 {
	p := 1.0
	for _, i := range term {
		p *= values[i]
	}
	return p
}

// check checks the law of a manifest.
func (l *Law) check(features []FeatureRange) error {
	if len(l.Inputs) > maxInputs || len(l.Terms) != len(l.Coefficients) {
		return fmt.Errorf("law: %d inputs, at most %d are allowed; %d terms with %d coefficients",
			len(l.Inputs), maxInputs, len(l.Terms), len(l.Coefficients))
	}
	for i := range l.Inputs {
		if err := l.Inputs[i].check(features); err != nil {
			return fmt.Errorf("law: input %d: %w", i, err)
		}
	}
	for k, term := range l.Terms {
		if len(term) == 0 || len(term) > maxInputs {
			return fmt.Errorf("law: term %d has %d inputs", k, len(term))
		}
		for _, i := range term {
			if i < 0 || i >= len(l.Inputs) {
				return fmt.Errorf("law: term %d refers to input %d of %d", k, i, len(l.Inputs))
			}
		}
	}
	for _, c := range append(slices.Clone(l.Coefficients), l.Intercept) {
		if !finite(c) {
			return fmt.Errorf("law: a coefficient is %g, want finite numbers", c)
		}
	}
	return nil
}

// Formula returns the law as text, with the inputs in their form and the coefficients of scaled
// inputs: "2.31 - 0.62 log(batch) + …".
func (l *Law) Formula(features []Feature) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.4g", l.Intercept)
	for k, term := range l.Terms {
		sign, c := "+", l.Coefficients[k]
		if c < 0 {
			sign, c = "-", -c
		}
		fmt.Fprintf(&b, " %s %.4g", sign, c)
		for _, i := range term {
			fmt.Fprintf(&b, " %s", l.Inputs[i].name(features))
		}
	}
	return b.String()
}

// name returns the name of the input in a term: batch, log(batch), 1/cpu, network=deep.
func (in *Input) name(features []Feature) string {
	f := features[in.Feature]
	switch in.Form {
	case LogOf, LogOf1:
		return string(in.Form) + "(" + f.Name + ")"
	case Inverse:
		return "1/" + f.Name
	case Level:
		return f.Name + "=" + f.Levels[in.LevelIndex]
	}
	return f.Name
}

// LawOptions are the options of a law.
type LawOptions struct {
	// Terms of the sum: "batch", "log(batch)", "log1p(processes)", "1/cpu", "network" (a
	// category: all levels), and products with "*". Nil selects them automatically: each feature
	// once (its logarithm if the values are evenly spaced by ratio), the inverse of positive
	// numbers, and all products of two.
	Terms []string `json:"terms,omitempty"`
	// Linear limits the automatic terms to products of plain features: the linear model of an
	// analysis of variance with every interaction.
	Linear bool `json:"linear,omitempty"`
	// Ridge is the penalty on coefficients; 0 selects it by held-out configurations, a negative
	// number means none (least squares).
	Ridge float64 `json:"ridge"`
	// Forest or Boosting fit trees to the residuals of the law; nil for none. Transform, seed,
	// folds and threads come from the law.
	Forest   *ForestOptions   `json:"forest,omitempty"`
	Boosting *BoostingOptions `json:"boosting,omitempty"`
	// Transform is None where it is empty.
	Transform Transform `json:"transform"`
	// Seed of folds and trees.
	Seed uint64 `json:"seed"`
	// Folds, MinExamples, MinSettings and Threads are as in ForestOptions.
	Folds       int `json:"folds"`
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	Threads     int `json:"-"`
	// Progress is called with the number of completed and planned fits.
	Progress func(done, planned int) `json:"-"`
}

// FitLaw fits a formula by least squares, optionally with trees on its residuals, and calibrates it
// as FitForest does. The law obeys the monotone signs: terms that violate them are left out.
func FitLaw(ctx context.Context, d *Dataset, o LawOptions) (*Regressor, error) {
	s, err := resolveBaseOptions(o.Transform, o.Folds, o.MinExamples, o.MinSettings, o.Threads,
		o.Seed)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	s.progress = o.Progress
	o.Transform, o.Folds = s.Transform, s.Folds
	if err := o.resolveTrees(s, len(d.Features)); err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	r, err := fitBase(ctx, d, s, func(train *Dataset) (baseFit, error) { return o.fit(ctx, train) })
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	r.Manifest.Family, r.Manifest.LawFit = FamilyLaw, &o
	if o.Forest != nil || o.Boosting != nil {
		r.Manifest.Family = FamilyLawTrees
	}
	return r, nil
}

// resolveTrees completes the options of trees that correct a law. Their targets are transformed
// residuals.
func (o *LawOptions) resolveTrees(s baseOptions, features int) error {
	if o.Forest != nil && o.Boosting != nil {
		return fmt.Errorf("%w: forest and boosting: want one of them", ErrBadOptions)
	}
	if o.Forest != nil {
		f := *o.Forest
		f.Transform, f.Seed, f.Folds, f.Threads, f.Progress = None, s.Seed, -1, s.Threads, nil
		f, err := f.resolve(features)
		o.Forest = &f
		return err
	}
	if o.Boosting != nil {
		b := *o.Boosting
		b.Transform, b.Seed, b.Folds, b.Threads, b.Progress = None, s.Seed, -1, s.Threads, nil
		b, err := b.resolve()
		o.Boosting = &b
		return err
	}
	return nil
}

func (o *LawOptions) fit(ctx context.Context, d *Dataset) (baseFit, error) {
	y := o.Transform.apply(d.Target)
	l, err := o.law(d, y)
	if err != nil {
		return baseFit{}, err
	}
	out := baseFit{base: l, law: l}
	if o.Forest == nil && o.Boosting == nil {
		return out, nil
	}
	rest := *d
	rest.Target = make([]float64, len(y))
	var row []float64
	for i := range y {
		row = d.Row(i, row)
		rest.Target[i] = y[i] - l.predict(row)
	}
	if o.Boosting != nil {
		trees, err := boost(ctx, &rest, *o.Boosting, newProgress(nil, 0))
		out.trees = ensemble{trees: trees}
		return out, err
	}
	trees, err := growForest(ctx, &rest, *o.Forest, newProgress(nil, 0))
	out.trees = ensemble{trees: trees, average: true}
	return out, err
}

// law fits the formula. It drops products and features along which the target violates a monotone
// sign, and fits again.
func (o *LawOptions) law(d *Dataset, y []float64) (*Law, error) {
	inputs, terms, err := o.terms(d)
	if err != nil {
		return nil, err
	}
	if len(inputs) > maxInputs {
		return nil, fmt.Errorf("%w: a law of %d inputs, want at most %d", ErrBadOptions,
			len(inputs), maxInputs)
	}
	walk := newSlopes(d)
	for {
		l := leastSquares(d, y, inputs, terms, o.Ridge)
		wrong := walk.firstWrong(l)
		if wrong < 0 {
			return l, nil
		}
		terms = withoutFeature(inputs, terms, wrong)
	}
}

// withoutFeature drops the products with a feature, otherwise its inverse, else all its terms.
func withoutFeature(inputs []Input, terms [][]int, feature int) [][]int {
	for _, drop := range []func(term []int) bool{
		func(term []int) bool { return len(term) > 1 },
		func(term []int) bool { return inputs[term[0]].Form == Inverse },
		func(term []int) bool { return true },
	} {
		kept := slices.DeleteFunc(slices.Clone(terms), func(term []int) bool {
			has := slices.ContainsFunc(term, func(i int) bool {
				return inputs[i].Feature == feature
			})
			return has && drop(term)
		})
		if len(kept) < len(terms) {
			return kept
		}
	}
	return nil
}

// leastSquares fits the terms. Ridge 0 is selected among several values by held-out configurations.
func leastSquares(d *Dataset, y []float64, inputs []Input, terms [][]int, ridge float64) *Law {
	e := newEquations(d, y, inputs, terms)
	if ridge == 0 {
		ridge = e.chooseRidge(d.folds(defaultFolds, 1))
	}
	coefficients := e.normal(func(int) bool { return true }).solve(max(ridge, 0))
	return &Law{
		Inputs:       inputs,
		Terms:        terms,
		Coefficients: coefficients[1:],
		Intercept:    coefficients[0],
		Ridge:        max(ridge, 0),
	}
}

// equations hold one column per term, the first constant.
type equations struct {
	rows   [][]float64
	y      []float64
	weight []float64
}

func newEquations(d *Dataset, y []float64, inputs []Input, terms [][]int) *equations {
	e := &equations{y: y, weight: d.Weight}
	var row []float64
	var values [maxInputs]float64
	for i := range y {
		row = d.Row(i, row)
		fill(inputs, row, &values)
		columns := make([]float64, 1, 1+len(terms))
		columns[0] = 1
		for _, term := range terms {
			columns = append(columns, product(term, &values))
		}
		e.rows = append(e.rows, columns)
	}
	return e
}

// ridges are tried from strong to weak.
var ridges = []float64{0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001}

func (e *equations) chooseRidge(folds []int) float64 {
	best, least := 0.01, math.Inf(1)
	if folds == nil {
		return best
	}
	outside := make([]*normal, foldCount(folds))
	for fold := range outside {
		outside[fold] = e.normal(func(i int) bool { return folds[i] != fold })
	}
	for _, ridge := range ridges {
		loss := 0.0
		for fold, n := range outside {
			c := n.solve(ridge)
			for i, f := range folds {
				if f == fold {
					miss := e.y[i] - dot(c, e.rows[i])
					loss += miss * miss * e.weightOf(i)
				}
			}
		}
		if loss < least {
			best, least = ridge, loss
		}
	}
	return best
}

func (e *equations) weightOf(i int) float64 {
	if e.weight == nil {
		return 1
	}
	return e.weight[i]
}

// normal are the normal equations of some examples: X'WX (its upper triangle), X'Wy, and the sum of
// the weights.
type normal struct {
	products, right []float64
	total           float64
}

func (e *equations) normal(of func(i int) bool) *normal {
	p := len(e.rows[0])
	n := &normal{products: make([]float64, p*p), right: make([]float64, p)}
	for i, row := range e.rows {
		if !of(i) {
			continue
		}
		w := e.weightOf(i)
		n.total += w
		for a, x := range row {
			wx := w * x
			n.right[a] += wx * e.y[i]
			products := n.products[a*p:][:p]
			for b := a; b < p; b++ {
				products[b] += wx * row[b]
			}
		}
	}
	return n
}

// solve returns the coefficients: (X'WX + n ridge I) c = X'Wy, with no penalty on the constant. A
// tiny ridge remains, because features may be collinear.
func (n *normal) solve(ridge float64) []float64 {
	p := len(n.right)
	right, c := mat.NewVecDense(p, n.right), mat.NewVecDense(p, nil)
	for tiny := 1e-9; ; tiny *= 10 {
		m := mat.NewSymDense(p, slices.Clone(n.products))
		for a := range p {
			penalty := tiny
			if a > 0 {
				penalty += ridge
			}
			m.SetSym(a, a, m.At(a, a)+penalty*n.total)
		}
		var factors mat.Cholesky
		if factors.Factorize(m) && factors.SolveVecTo(c, right) == nil {
			return c.RawVector().Data
		}
		if tiny > 1 { // only for extreme numbers
			c.Zero()
			return c.RawVector().Data
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}
