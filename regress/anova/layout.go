package anova

import (
	"fmt"

	"gonum.org/v1/gonum/stat"
)

// layout assigns columns of the model matrix to the terms of a design: first the intercept, then
// the products of the bases of the variables of each term.
type layout struct {
	design      *Design
	terms       []term
	start       []int     // first column of each term, and the number of columns
	mean, scale []float64 // of the covariates
}

func newLayout(d *Design) (*layout, error) {
	terms, err := d.terms()
	if err != nil {
		return nil, err
	}
	l := &layout{
		design: d,
		terms:  terms,
		start:  []int{1},
		mean:   make([]float64, len(d.Variables)),
		scale:  make([]float64, len(d.Variables)),
	}
	for i := range d.Variables {
		if d.Variables[i].Levels == nil {
			l.mean[i], l.scale[i] = stat.PopMeanStdDev(d.Variables[i].Values, nil)
		}
	}
	for _, t := range terms {
		width := 1
		for _, v := range t {
			width *= l.width(v)
			if l.columns()+width > MaxParameters {
				return nil, fmt.Errorf("%s: %w: it has over %d parameters; use fewer"+
					" interactions, or covariates for factors with many levels", d.Response,
					ErrTooLarge, MaxParameters)
			}
		}
		l.start = append(l.start, l.columns()+width)
	}
	runs, parameters := len(d.Y), l.columns()
	if float64(runs*len(terms))*float64(parameters*parameters) > MaxEffort {
		return nil, fmt.Errorf("%s: %w: it has %d terms and %d parameters for %d runs; use"+
			" fewer interactions, or covariates for factors with many levels", d.Response,
			ErrTooLarge, len(terms), parameters, runs)
	}
	return l, nil
}

// width returns the number of columns of a variable.
func (l *layout) width(v int) int { return max(len(l.design.Variables[v].Levels)-1, 1) }

// columns returns the number of columns of the model.
func (l *layout) columns() int { return l.start[len(l.start)-1] }

// basis returns the columns of a variable at a value: indicators of all levels but the first, or
// the standardized covariate.
func (l *layout) basis(v int, value float64) []float64 {
	b := make([]float64, l.width(v))
	if l.design.Variables[v].Levels == nil {
		b[0] = (value - l.mean[v]) / l.scale[v]
	} else if value > 0 {
		b[int(value)-1] = 1
	}
	return b
}

// average returns the mean of the bases over all levels of a factor, or the basis at the mean of a
// covariate.
func (l *layout) average(v int) []float64 {
	b := make([]float64, l.width(v))
	if levels := l.design.Variables[v].Levels; levels != nil {
		for i := range b {
			b[i] = 1 / float64(len(levels))
		}
	}
	return b
}

// row returns a row of the model matrix. The columns are linear in the basis of each variable, so
// averages of bases give averages of rows.
func (l *layout) row(bases [][]float64) []float64 {
	row := make([]float64, 1, l.columns())
	row[0] = 1
	for _, t := range l.terms {
		products := []float64{1}
		for _, v := range t {
			var next []float64
			for _, p := range products {
				for _, b := range bases[v] {
					next = append(next, p*b)
				}
			}
			products = next
		}
		row = append(row, products...)
	}
	return row
}

// matrix returns the columns of the model matrix.
func (l *layout) matrix() [][]float64 {
	columns := make([][]float64, l.columns())
	for i := range columns {
		columns[i] = make([]float64, len(l.design.Y))
	}
	bases := make([][]float64, len(l.design.Variables))
	for run := range l.design.Y {
		for v := range bases {
			bases[v] = l.basis(v, l.design.Variables[v].Values[run])
		}
		for i, x := range l.row(bases) {
			columns[i][run] = x
		}
	}
	return columns
}
