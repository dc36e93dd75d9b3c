package regress

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Effect is a term of a linear model: a feature, a level of a category
// ("network=deep"), or a product of several ("cpu:njobs").
type Effect struct {
	Name string `json:"name"`
	// F compares the models with and without the term, both with all terms that
	// do not contain it (sums of squares of type II), and P is how likely so large
	// an F is by chance.
	F float64 `json:"f"`
	P float64 `json:"p"`
	// Coefficient in the units of target and features, its standard error, and T
	// and PT of its test against 0, with the 95 % interval.
	Coefficient float64 `json:"coefficient"`
	Error       float64 `json:"standard_error"`
	T           float64 `json:"t"`
	PT          float64 `json:"p_t"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
}

// Linear is an analysis of variance of a factorial experiment.
type Linear struct {
	Intercept float64  `json:"intercept"`
	Effects   []Effect `json:"effects"`
	// Freedom is the degrees of freedom of the residuals.
	Freedom int `json:"residual_degrees_of_freedom"`
	// Variance of the residuals and R2 are those of the fit itself, not of
	// held-out examples.
	Variance float64 `json:"variance"`
	R2       float64 `json:"r2"`
}

// FitLinear fits the plain target by the features and their products of up to
// order features, without those that repeat a product of others, and analyses its
// variance. Weights are not used. An error wraps ErrBadExamples, ErrBadSettings,
// or ErrTooFewExamples where no degree of freedom is left.
func FitLinear(d *Dataset, order int) (*Linear, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("linear model of %s: %w", d.TargetName, err)
	}
	if order < 1 {
		return nil, fmt.Errorf("linear model of %s: %w: order is %d, want 1 or more", d.TargetName, ErrBadSettings, order)
	}
	l, err := fitLinear(d.canonical(), order)
	if err != nil {
		return nil, fmt.Errorf("linear model of %s: %w", d.TargetName, err)
	}
	return l, nil
}

func fitLinear(d *Dataset, order int) (*Linear, error) {
	inputs, terms, err := linearTerms(d)
	if err != nil {
		return nil, err
	}
	terms = slices.DeleteFunc(terms, func(t []int) bool { return len(t) > order })
	m := newDesign(d, inputs, terms)
	l := &Linear{Freedom: d.Len() - len(terms) - 1}
	if l.Freedom < 1 {
		return nil, fmt.Errorf("%w: %d examples for %d terms and a constant", ErrTooFewExamples, d.Len(), len(terms))
	}
	whole, err := m.fit(all(len(terms)))
	if err != nil {
		return nil, err
	}
	l.Intercept, l.Variance = whole.c[0], whole.rss/float64(l.Freedom)
	l.R2 = 1 - whole.rss/m.total()
	spreads, err := m.spreads()
	if err != nil {
		return nil, err
	}
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(l.Freedom)}
	far := student.Quantile(0.975)
	for k, term := range terms {
		e := Effect{Coefficient: whole.c[k+1], Error: math.Sqrt(l.Variance * spreads[k+1])}
		for i, in := range term {
			if i > 0 {
				e.Name += ":"
			}
			e.Name += inputs[in].name(d.Features)
		}
		e.T = e.Coefficient / e.Error
		e.PT = 2 * student.Survival(math.Abs(e.T))
		e.Low, e.High = e.Coefficient-far*e.Error, e.Coefficient+far*e.Error
		if e.F, err = m.compare(terms, k, l.Variance); err != nil {
			return nil, err
		}
		e.P = distuv.F{D1: 1, D2: float64(l.Freedom)}.Survival(max(e.F, 0))
		l.Effects = append(l.Effects, e)
	}
	return l, nil
}

// Effect returns a term by its name, in any order of its factors, and whether
// there is one.
func (l *Linear) Effect(name string) (Effect, bool) {
	same := func(n string) string {
		parts := strings.Split(n, ":")
		slices.Sort(parts)
		return strings.Join(parts, ":")
	}
	for _, e := range l.Effects {
		if same(e.Name) == same(name) {
			return e, true
		}
	}
	return Effect{}, false
}

// design holds the columns of a linear model in the units of the features.
type design struct {
	columns [][]float64 // the constant first
	y       []float64
}

func newDesign(d *Dataset, inputs []Input, terms [][]int) *design {
	m := &design{y: d.Target, columns: [][]float64{slices.Repeat([]float64{1}, d.Len())}}
	for _, term := range terms {
		column := slices.Repeat([]float64{1}, d.Len())
		for i := range column {
			for _, in := range term {
				column[i] *= inputs[in].shape(d.Columns[inputs[in].Feature][i])
			}
		}
		m.columns = append(m.columns, column)
	}
	return m
}

type linearFit struct {
	c   []float64
	rss float64
}

func (m *design) matrix(terms []int) *mat.Dense {
	x := mat.NewDense(len(m.y), len(terms)+1, nil)
	x.SetCol(0, m.columns[0])
	for k, t := range terms {
		x.SetCol(k+1, m.columns[t+1])
	}
	return x
}

// fit solves by QR, which keeps digits that normal equations lose.
func (m *design) fit(terms []int) (linearFit, error) {
	x := m.matrix(terms)
	var factors mat.QR
	factors.Factorize(x)
	c, y := mat.NewVecDense(len(terms)+1, nil), mat.NewVecDense(len(m.y), m.y)
	if err := factors.SolveVecTo(c, false, y); err != nil {
		return linearFit{}, fmt.Errorf("%w: the examples cannot tell %d terms apart", ErrBadExamples, len(terms))
	}
	var rest mat.VecDense
	rest.MulVec(x, c)
	rest.SubVec(y, &rest)
	return linearFit{c.RawVector().Data, mat.Dot(&rest, &rest)}, nil
}

// compare is the F statistic of type II of one term.
func (m *design) compare(terms [][]int, k int, variance float64) (float64, error) {
	var without []int
	for i, other := range terms {
		contains := !slices.ContainsFunc(terms[k], func(in int) bool { return !slices.Contains(other, in) })
		if !contains {
			without = append(without, i)
		}
	}
	small, err := m.fit(without)
	if err != nil {
		return 0, err
	}
	large, err := m.fit(append(without, k))
	return (small.rss - large.rss) / variance, err
}

// spreads is the diagonal of (X'X)^-1.
func (m *design) spreads() ([]float64, error) {
	x := m.matrix(all(len(m.columns) - 1))
	var normal, inverse mat.Dense
	normal.Mul(x.T(), x)
	if err := inverse.Inverse(&normal); err != nil {
		var condition mat.Condition // a warning about lost digits, unless all are
		if !errors.As(err, &condition) || math.IsInf(float64(condition), 0) {
			return nil, fmt.Errorf("%w: %w", ErrBadExamples, err)
		}
	}
	diagonal := make([]float64, len(m.columns))
	for i := range diagonal {
		diagonal[i] = max(inverse.At(i, i), 0)
	}
	return diagonal, nil
}

func (m *design) total() float64 {
	center, sum := mean(m.y), 0.0
	for _, y := range m.y {
		sum += (y - center) * (y - center)
	}
	return sum
}
