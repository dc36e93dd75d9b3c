package anova

import (
	"slices"

	"gonum.org/v1/gonum/mat"
)

// fullLeverage is the leverage from which a run counts as fitted by a parameter of its own. Its
// variance cannot be estimated.
const fullLeverage = 1 - 1e-9

// maxRobustF is the F above which the robust variance of a contrast counts as zero.
const maxRobustF = 1e15

// addRobust adds the Wald tests with the covariance HC3 (MacKinnon, White, 1985).
func (m *linearModel) addRobust(r *VarianceAnalysis, e *estimator) {
	leverages := m.space.leverages(r.Runs)
	if slices.Max(leverages) > fullLeverage {
		r.Notes = append(r.Notes, "there is no robust test: a run is the only one with its"+
			" combination of levels")
		return
	}
	covariance := m.robustCovariance(e, leverages)
	at := 0
	for _, t := range m.terms {
		if at == len(r.Terms) {
			break
		}
		result := &r.Terms[at]
		if result.Name != m.design.name(t) {
			continue // The term has no degrees of freedom.
		}
		at++
		f, degrees := m.wald(t, e, covariance)
		if degrees != result.Degrees || notFinite(f) || f > maxRobustF {
			continue
		}
		p := survivalF(f, float64(degrees), float64(m.residualDegrees))
		result.RobustF, result.RobustP = &f, &p
	}
}

// robustCovariance returns the covariance HC3 of the coefficients of the kept columns.
func (m *linearModel) robustCovariance(e *estimator, leverages []float64) *mat.Dense {
	weighted := mat.NewDense(len(m.kept), len(m.rest), nil)
	for k, q := range m.space {
		for run, x := range q {
			weighted.Set(k, run, x*m.rest[run]/(1-leverages[run]))
		}
	}
	var scaled, covariance mat.Dense
	scaled.Mul(&e.inverse, weighted)
	covariance.Mul(&scaled, scaled.T())
	return &covariance
}

// wald tests the parameters of a term and of the terms that contain it, as far as their contrasts
// are uncorrelated with the parameters of the latter. It is the type II test for the covariance.
func (m *linearModel) wald(t term, e *estimator, covariance *mat.Dense) (f float64, degrees int) {
	own, higher := m.parametersOf(t)
	all := slices.Concat(own, higher)
	contrasts := mat.NewDense(len(own), len(all), nil)
	for i := range own {
		contrasts.Set(i, i, 1)
	}
	if len(higher) > 0 {
		between := pick(covariance, all, higher)
		var qr mat.QR
		qr.Factorize(between)
		var q mat.Dense
		qr.QTo(&q)
		contrasts.Copy(q.Slice(0, len(all), len(higher), len(all)).T())
	}
	b := mat.NewVecDense(len(all), nil)
	for i, k := range all {
		b.SetVec(i, e.coefficients.AtVec(k))
	}
	var value, solved mat.VecDense
	value.MulVec(contrasts, b)
	var left, variance mat.Dense
	left.Mul(contrasts, pick(covariance, all, all))
	variance.Mul(&left, contrasts.T())
	if err := solved.SolveVec(&variance, &value); err != nil {
		return 0, 0
	}
	return mat.Dot(&value, &solved) / float64(len(own)), len(own)
}

// parametersOf returns the positions in kept of the columns of a term, and of those of the terms
// that contain it.
func (m *linearModel) parametersOf(t term) (own, higher []int) {
	for k, u := range m.terms {
		if !u.contains(t) {
			continue
		}
		for i := m.start[k]; i < m.start[k+1]; i++ {
			switch at, kept := slices.BinarySearch(m.kept, i); {
			case kept && len(u) == len(t):
				own = append(own, at)
			case kept:
				higher = append(higher, at)
			}
		}
	}
	return own, higher
}

// pick returns rows and columns of a matrix.
func pick(from *mat.Dense, rows, columns []int) *mat.Dense {
	to := mat.NewDense(len(rows), len(columns), nil)
	for i, row := range rows {
		for k, column := range columns {
			to.Set(i, k, from.At(row, column))
		}
	}
	return to
}
