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

// predict is in the unit of the fit.
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

// check holds for a law that was read.
func (l *Law) check(features []FeatureRange) error {
	if len(l.Inputs) > maxInputs || len(l.Terms) != len(l.Coefficients) {
		return fmt.Errorf("law: %d inputs, %d terms with %d coefficients", len(l.Inputs),
			len(l.Terms), len(l.Coefficients))
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
				return fmt.Errorf("law: term %d names input %d of %d", k, i, len(l.Inputs))
			}
		}
	}
	for _, c := range append(slices.Clone(l.Coefficients), l.Intercept) {
		if !finite(c) {
			return fmt.Errorf("law: a coefficient is %g", c)
		}
	}
	return nil
}

// Formula writes the law for people, with the inputs as they enter and the
// coefficients of scaled inputs: "2.31 - 0.62 log(batch) + …".
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

// name is how a term names the input: batch, log(batch), 1/cpu, network=deep.
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

// LawOptions are the settings of a law.
type LawOptions struct {
	// Terms are what the law adds up: "batch", "log(batch)", "log1p(processes)",
	// "1/cpu", "network" (a category: all levels), and products with "*". Nil
	// takes what suits the features: each once (its logarithm where the values lie
	// evenly by ratio), the inverse of positive numbers, and all products
	// of two.
	Terms []string `json:"terms,omitempty"`
	// Linear leaves inverses, logarithms and all but products out of the automatic
	// terms: the linear model of an analysis of variance with every interaction.
	Linear bool `json:"linear,omitempty"`
	// Ridge is the penalty on coefficients; 0 chooses it by held-out settings, a
	// negative number is none (least squares).
	Ridge float64 `json:"ridge"`
	// Forest or Boosting are trees on what the law leaves; nil for none. Their
	// transform, seed, folds and threads are those of the law.
	Forest   *ForestOptions   `json:"forest,omitempty"`
	Boosting *BoostingOptions `json:"boosting,omitempty"`
	// Transform is None where it is empty.
	Transform Transform `json:"transform"`
	// Seed decides the deal of folds, and the trees.
	Seed uint64 `json:"seed"`
	// Folds, MinExamples, MinSettings and Threads are as in ForestOptions.
	Folds       int `json:"folds"`
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	Threads     int `json:"-"`
	// Progress is told how many of all planned fits are done.
	Progress func(done, planned int) `json:"-"`
}

// FitLaw fits a formula by least squares, and trees to what it leaves if asked,
// and calibrates as FitForest does. The law obeys the monotone signs: terms that
// break them are left out.
func FitLaw(ctx context.Context, d *Dataset, o LawOptions) (*Regressor, error) {
	s, err := resolveBaseOptions(o.Transform, o.Folds, o.MinExamples, o.MinSettings, o.Threads, o.Seed)
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

// resolveTrees completes the settings of trees that correct a law: they see
// differences, already transformed.
func (o *LawOptions) resolveTrees(s baseOptions, features int) error {
	if o.Forest != nil && o.Boosting != nil {
		return fmt.Errorf("%w: forest and boosting: want one of them", ErrBadSettings)
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

// law fits the formula, and again without products or a feature that would move
// the target the wrong way.
func (o *LawOptions) law(d *Dataset, y []float64) (*Law, error) {
	inputs, terms, err := o.terms(d)
	if err != nil {
		return nil, err
	}
	if len(inputs) > maxInputs {
		return nil, fmt.Errorf("%w: a law of %d inputs, want at most %d", ErrBadSettings,
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

// withoutFeature leaves out the products with a feature, then its inverse, then
// whatever is left of it.
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

// leastSquares fits the terms; a ridge of 0 is chosen among a few by what it
// predicts of settings that are held out.
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

// equations hold a term per column, the first constant.
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

// ridges are tried from strong to weak; the penalty counts as that many
// thousandths of the examples.
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

// normal are the normal equations of some examples: X'WX, of which the upper
// triangle is filled, X'Wy, and the sum of the weights.
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

// solve returns the coefficients: (X'WX + n ridge I) c = X'Wy, the constant
// unpunished. A tiny ridge stays, because features may repeat each other.
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
		if tiny > 1 { // only for numbers beyond all sense
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
