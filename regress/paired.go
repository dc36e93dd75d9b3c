package regress

import "fmt"

// Paired is the mean of a - b over examples, two losses of the same examples, and
// its 95 % interval by a bootstrap over settings (nil: every example stands for
// itself). Where the interval lies below 0, a is better and not by luck. An error
// wraps ErrBadExamples: the slices are empty or not equally long.
func Paired(a, b []float64, group []int, seed uint64) (Estimate, error) {
	if len(a) == 0 || len(a) != len(b) || group != nil && len(group) != len(a) {
		return Estimate{}, fmt.Errorf("%w: losses of %d, %d and groups of %d examples",
			ErrBadExamples, len(a), len(b), len(group))
	}
	type sum struct{ difference, count float64 }
	var sums []sum
	number := make(map[int]int)
	whole := sum{}
	for i := range a {
		g := i
		if group != nil {
			g = group[i]
		}
		n, known := number[g]
		if !known {
			n = len(sums)
			number[g] = n
			sums = append(sums, sum{})
		}
		sums[n].difference += a[i] - b[i]
		sums[n].count++
		whole.difference += a[i] - b[i]
		whole.count++
	}
	random := stream(seed).split(bootstrapBranch)
	var draws []float64
	for range resamples(len(sums)) {
		drawn := sum{}
		for range sums {
			s := sums[random.below(len(sums))]
			drawn.difference += s.difference
			drawn.count += s.count
		}
		draws = append(draws, drawn.difference/drawn.count)
	}
	e := Estimate{Value: whole.difference / whole.count}
	e.Low, e.High = middle95(draws)
	return e, nil
}
