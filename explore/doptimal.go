package explore

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// dOptimal chooses n of the candidate cells, possibly with repetitions, that maximise det(X'X): the
// volume of the confidence region of the effects is smallest then. The model has the main effects
// and interactions of two factors, and a square of the logarithm of the batch size. The algorithm
// exchanges one cell at a time as long as that helps (Fedorov 1972), from several random starts.
func dOptimal(candidates []Cell, n int, seed uint64) ([]Cell, error) {
	rows := modelRows(candidates)
	terms := len(rows[0])
	if n == 0 {
		n = min(terms+max(2, terms/2), len(candidates))
	}
	if n < terms {
		return nil, fmt.Errorf("--runs %d is less than the %d effects of the model", n, terms)
	}
	random := rand.New(rand.NewPCG(seed, 0xd0))
	const starts = 10
	best, highest := []int(nil), math.Inf(-1)
	for range starts {
		chosen := make([]int, n)
		for i := range chosen {
			chosen[i] = random.IntN(len(candidates))
		}
		value := exchange(rows, chosen)
		if value > highest {
			best, highest = chosen, value
		}
	}
	if math.IsInf(highest, -1) {
		return nil, fmt.Errorf("--design d-optimal: %d cells cannot tell %d effects apart",
			len(candidates), terms)
	}
	cells := make([]Cell, n)
	for i, k := range best {
		cells[i] = candidates[k]
	}
	return cells, nil
}

// exchange replaces chosen rows one at a time until no replacement raises the determinant, and
// returns its logarithm.
func exchange(rows [][]float64, chosen []int) float64 {
	value := logDeterminant(rows, chosen)
	for isBetter := true; isBetter; {
		isBetter = false
		for i := range chosen {
			kept := chosen[i]
			for k := range rows {
				chosen[i] = k
				if v := logDeterminant(rows, chosen); v > value+1e-9 {
					value, kept, isBetter = v, k, true
				}
			}
			chosen[i] = kept
		}
	}
	return value
}

// logDeterminant returns log det(X'X) of the chosen rows, -Inf if it is singular.
func logDeterminant(rows [][]float64, chosen []int) float64 {
	terms := len(rows[0])
	x := mat.NewSymDense(terms, nil)
	for _, k := range chosen {
		x.SymRankOne(x, 1, mat.NewVecDense(terms, rows[k]))
	}
	var c mat.Cholesky
	if !c.Factorize(x) {
		return math.Inf(-1)
	}
	return c.LogDet()
}

// modelRows returns the values of the effects for each cell. Factors are logarithms, scaled to -1
// to 1, because times are nearly products of their effects. Factors with one level have no effect.
func modelRows(cells []Cell) [][]float64 {
	var scaled [4][]float64
	for i := range scaled {
		values := make([]float64, len(cells))
		low, high := math.Inf(1), math.Inf(-1)
		for k, c := range cells {
			values[k] = math.Log1p(float64(c.levels()[i]))
			low, high = min(low, values[k]), max(high, values[k])
		}
		if low == high {
			continue
		}
		for k := range values {
			values[k] = 2*(values[k]-low)/(high-low) - 1
		}
		scaled[i] = values
	}
	hasMiddle := false
	for _, v := range scaled[0] {
		hasMiddle = hasMiddle || v > -1 && v < 1
	}
	rows := make([][]float64, len(cells))
	for k := range cells {
		row := []float64{1}
		for i := range scaled {
			if scaled[i] == nil {
				continue
			}
			row = append(row, scaled[i][k])
			for j := range i {
				if scaled[j] != nil {
					row = append(row, scaled[i][k]*scaled[j][k])
				}
			}
		}
		if hasMiddle {
			row = append(row, scaled[0][k]*scaled[0][k])
		}
		rows[k] = row
	}
	return rows
}
