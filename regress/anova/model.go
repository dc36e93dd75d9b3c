package anova

import (
	"errors"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// ErrSaturated is wrapped by the error of Fit for a design with too few runs.
var ErrSaturated = errors.New("no residual degrees of freedom")

// linearModel is a fitted linear model.
type linearModel struct {
	*layout
	matrix          [][]float64
	kept            []int // columns that do not depend on earlier ones
	space           orthogonalBasis
	fitted, rest    []float64
	squares         float64 // of the residuals
	residualDegrees int
}

func newModel(l *layout) (*linearModel, error) {
	m := &linearModel{layout: l, matrix: l.matrix()}
	runs := len(l.design.Y)
	for i, column := range m.matrix {
		if m.space.add(column) {
			m.kept = append(m.kept, i)
		}
		if len(m.kept) == runs {
			break
		}
	}
	m.residualDegrees = runs - len(m.kept)
	if m.residualDegrees < 1 {
		return nil, fmt.Errorf("%s: %w: the model has %d parameters for %d runs; use fewer"+
			" interactions or factors, or more replications", l.design.Response, ErrSaturated,
			l.columns(), runs)
	}
	m.rest = m.space.residuals(l.design.Y)
	m.squares = floats.Dot(m.rest, m.rest)
	for i, y := range l.design.Y {
		m.fitted = append(m.fitted, y-m.rest[i])
	}
	if total := m.total(); m.squares < 1e-20*total {
		return nil, fmt.Errorf("%s: the model reproduces all %d runs exactly, so there is no"+
			" residual variance to compare with: use fewer factors, or check that the runs were"+
			" measured", l.design.Response, runs)
	}
	return m, nil
}

// total returns the sum of squares about the mean.
func (m *linearModel) total() float64 {
	_, deviation := stat.PopMeanStdDev(m.design.Y, nil)
	return deviation * deviation * float64(len(m.design.Y))
}

func (m *linearModel) result() *VarianceAnalysis {
	runs, total := len(m.design.Y), m.total()
	r := &VarianceAnalysis{
		Response:        m.design.Response,
		Runs:            runs,
		ResidualSquares: m.squares,
		ResidualDegrees: m.residualDegrees,
		R2:              1 - m.squares/total,
		Fitted:          m.fitted,
		Residuals:       m.rest,
	}
	r.AdjustedR2 = 1 - (1-r.R2)*float64(runs-1)/float64(m.residualDegrees)
	return r
}

// addTerms adds the type II test of each term.
func (m *linearModel) addTerms(r *VarianceAnalysis) error {
	for k, t := range m.terms {
		others, own := m.spaces(t)
		degrees := len(own)
		name, full := m.design.name(t), m.start[k+1]-m.start[k]
		if degrees == 0 && len(t) == 1 {
			return fmt.Errorf("%s: %s cannot be separated from the other terms of the model: it"+
				" changes only together with them; remove it or one of them", r.Response, name)
		}
		if degrees < full {
			r.Notes = append(r.Notes, fmt.Sprintf("%s has %d of %d degrees of freedom: %s", name,
				degrees, full, m.reason(t)))
		}
		if degrees > 0 {
			squares := squaresIn(own, others.residuals(m.design.Y))
			r.Terms = append(r.Terms, m.term(name, degrees, squares))
		}
	}
	return nil
}

// reason returns why a term has fewer degrees of freedom than columns.
func (m *linearModel) reason(t term) string {
	if empty := m.emptyCells(t); len(empty) > 0 {
		const shown = 3
		list := strings.Join(empty[:min(shown, len(empty))], ", ")
		if len(empty) > shown {
			list += fmt.Sprintf(" and %d more", len(empty)-shown)
		}
		return "there are no runs with " + list + "; the test is about the other combinations"
	}
	return "the rest cannot be separated from other terms"
}

// emptyCells returns the combinations of levels that have no run.
func (m *linearModel) emptyCells(t term) []string {
	cells := []string{""}
	keys := make([]string, len(m.design.Y))
	for _, v := range t {
		variable := &m.design.Variables[v]
		if variable.Levels == nil {
			continue
		}
		var next []string
		for _, cell := range cells {
			for _, level := range variable.Levels {
				next = append(next, cell+" "+variable.Name+"="+level)
			}
		}
		cells = next
		for i, x := range variable.Values {
			keys[i] += " " + variable.Name + "=" + variable.Levels[int(x)]
		}
	}
	seen := map[string]bool{}
	for _, key := range keys {
		seen[key] = true
	}
	var empty []string
	for _, cell := range cells {
		if !seen[cell] {
			empty = append(empty, strings.TrimSpace(cell))
		}
	}
	return empty
}

// spaces returns the space of all terms that do not contain t, and the space by which t extends it.
// The projection of the response on the latter has the type II sum of squares of t.
func (m *linearModel) spaces(t term) (others, own orthogonalBasis) {
	var basis orthogonalBasis
	basis.add(m.matrix[0])
	at := 0
	for k, u := range m.terms {
		if !u.contains(t) {
			for i := m.start[k]; i < m.start[k+1]; i++ {
				basis.add(m.matrix[i])
			}
		} else if len(u) == len(t) {
			at = k
		}
	}
	first := len(basis)
	for i := m.start[at]; i < m.start[at+1]; i++ {
		basis.add(m.matrix[i])
	}
	return basis[:first:first], basis[first:]
}

// squaresIn returns the sum of squares of the projection of y on a space.
func squaresIn(space orthogonalBasis, y []float64) float64 {
	sum := 0.0
	for _, q := range space {
		projection := floats.Dot(q, y)
		sum += projection * projection
	}
	return sum
}

func (m *linearModel) term(name string, degrees int, squares float64) Term {
	d1, d2, runs := float64(degrees), float64(m.residualDegrees), float64(len(m.design.Y))
	mean := m.squares / d2
	t := Term{
		Name:          name,
		Degrees:       degrees,
		Squares:       squares,
		F:             squares / d1 / mean,
		PartialEta2:   squares / (squares + m.squares),
		PartialOmega2: max(0, (squares-d1*mean)/(squares+(runs-d1)*mean)),
		Omega2:        max(0, (squares-d1*mean)/(m.total()+mean)),
	}
	t.P = survivalF(t.F, d1, d2)
	low, high := noncentrality(t.F, d1, d2, IntervalConfidence)
	t.EffectLow, t.EffectHigh = low/(low+runs), high/(high+runs)
	return t
}
