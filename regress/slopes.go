package regress

import (
	"cmp"
	"math"
	"slices"
)

// slopes walks along the features that have a monotone sign, each from half a
// range below the examples to a range above them, beside rows of the examples
// and others mixed from their values.
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

// stepsOf are evenly spaced values, those of a positive feature by ratio.
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

// firstWrong returns a feature along which a function moves the wrong way, -1 if
// there is none.
func (s *slopes) firstWrong(b base) int {
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

// wrongStep is a step along a walk that moves the wrong way.
type wrongStep struct {
	from, to []float64 // rows
	by       float64
}

// worst returns the steps that go wrong most, one per walk and at most count.
func (s *slopes) worst(b base, count int) []wrongStep {
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

// share is the largest part, from 0 to 1, of a correction that can be added to
// a trend that moves the right way without turning it.
func (s *slopes) share(trend, correction base) float64 {
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
