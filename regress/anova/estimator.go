package anova

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// estimator estimates linear functions of the coefficients of a model.
type estimator struct {
	kept, dropped []int
	coefficients  *mat.VecDense   // of the kept columns
	inverse       mat.TriDense    // of the triangular factor of the kept columns
	relation      []*mat.VecDense // coefficients of each dropped column in the kept ones
	deviation     float64         // of the residuals
	tQuantile     float64
}

// estimate returns the estimator of a model. The kept columns are the product of the orthonormal
// basis and a triangular factor.
func (m *linearModel) estimate() *estimator {
	e := &estimator{kept: m.kept}
	n, degrees := len(m.kept), float64(m.residualDegrees)
	factor := mat.NewTriDense(n, mat.Upper, nil)
	for k, i := range m.kept {
		for row := range k + 1 {
			factor.SetTri(row, k, floats.Dot(m.space[row], m.matrix[i]))
		}
	}
	// An ill-conditioned factor is inverted, too; add has dropped dependent columns.
	_ = e.inverse.InverseTri(factor)
	e.coefficients = e.solve(m.space, m.design.Y)
	at := 0
	for i, column := range m.matrix {
		if at < n && m.kept[at] == i {
			at++
			continue
		}
		e.dropped = append(e.dropped, i)
		e.relation = append(e.relation, e.solve(m.space, column))
	}
	e.deviation = math.Sqrt(m.squares / degrees)
	e.tQuantile = distuv.StudentsT{Sigma: 1, Nu: degrees}.Quantile((1 + IntervalConfidence) / 2)
	return e
}

// solve returns the coefficients of the kept columns that come closest to y.
func (e *estimator) solve(space orthogonalBasis, y []float64) *mat.VecDense {
	projections := mat.NewVecDense(len(space), nil)
	for k, q := range space {
		projections.SetVec(k, floats.Dot(q, y))
	}
	var coefficients mat.VecDense
	coefficients.MulVec(&e.inverse, projections)
	return &coefficients
}

// mean sets the mean of a row of the model matrix and its interval. It reports false if the runs do
// not determine the mean.
func (e *estimator) mean(row []float64, p *MeanPoint) bool {
	own := mat.NewVecDense(len(e.kept), nil)
	for k, i := range e.kept {
		own.SetVec(k, row[i])
	}
	for k, i := range e.dropped {
		if math.Abs(mat.Dot(own, e.relation[k])-row[i]) > 1e-6 {
			return false
		}
	}
	var scaled mat.VecDense
	scaled.MulVec(e.inverse.T(), own)
	half := e.tQuantile * e.deviation * mat.Norm(&scaled, 2)
	p.Mean = mat.Dot(own, e.coefficients)
	p.Low, p.High = p.Mean-half, p.Mean+half
	return !notFinite(p.Low) && !notFinite(p.High)
}
