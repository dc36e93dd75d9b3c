package anova

import (
	"slices"
	"strconv"
)

// covariatePoints is the number of points at which the line of a covariate is computed.
const covariatePoints = 5

// maxMeans is the largest number of points of a term.
const maxMeans = 600

// addMeans adds the means of all terms of one or two variables. Means that cannot be estimated,
// because a combination of levels has no run, are left out.
func (m *linearModel) addMeans(r *VarianceAnalysis) {
	e, missing := m.estimate(), false
	for _, t := range m.terms {
		if len(t) > 2 {
			continue
		}
		points, all := m.means(e, t)
		missing = missing || !all
		if len(points) > 0 {
			var names []string
			for _, v := range t {
				names = append(names, m.design.Variables[v].Name)
			}
			r.Means = append(r.Means, Means{Term: m.design.name(t), Variables: names, Values: points})
		}
	}
	if missing {
		r.Notes = append(r.Notes, "means over combinations of levels without runs are left out")
	}
}

// means returns the estimated means of a term, and whether all of them could be estimated.
func (m *linearModel) means(e *estimator, t term) (points []MeanPoint, all bool) {
	all = true
	bases := make([][]float64, len(m.design.Variables))
	for v := range bases {
		bases[v] = m.average(v)
	}
	settings := [][]float64{nil}
	for _, v := range t {
		var next [][]float64
		for _, s := range settings {
			for _, x := range m.values(v) {
				next = append(next, append(slices.Clone(s), x))
			}
		}
		settings = next
	}
	if len(settings) > maxMeans {
		return nil, false
	}
	for _, setting := range settings {
		p := MeanPoint{Runs: m.runsAt(t, setting)}
		for k, v := range t {
			bases[v] = m.basis(v, setting[k])
			p.Levels = append(p.Levels, m.design.Variables[v].label(setting[k]))
		}
		if e.mean(m.row(bases), &p) {
			points = append(points, p)
		} else {
			all = false
		}
	}
	return points, all
}

// values returns the values at which means are computed.
func (m *linearModel) values(v int) []float64 {
	var all []float64
	if levels := m.design.Variables[v].Levels; levels != nil {
		for i := range levels {
			all = append(all, float64(i))
		}
		return all
	}
	low, high := slices.Min(m.design.Variables[v].Values), slices.Max(m.design.Variables[v].Values)
	for i := range covariatePoints {
		all = append(all, low+(high-low)*float64(i)/(covariatePoints-1))
	}
	return all
}

func (v *Variable) label(value float64) string {
	if v.Levels == nil {
		return strconv.FormatFloat(value, 'g', 5, 64)
	}
	return v.Levels[int(value)]
}

func (m *linearModel) runsAt(t term, setting []float64) int {
	runs := 0
	for run := range m.design.Y {
		same := true
		for k, v := range t {
			same = same && m.design.Variables[v].Values[run] == setting[k]
		}
		if same {
			runs++
		}
	}
	return runs
}
