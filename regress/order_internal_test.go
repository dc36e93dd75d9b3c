package regress

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Radix sort and comparison sort give the same order.
func TestSortedOrder_EqualsComparisonSort(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{1, 100, fewOrdered, 3 * fewOrdered} {
		numbers := make([]float64, n)
		for kind, draw := range []func() float64{
			func() float64 { return random.NormFloat64() * math.Exp(200*random.NormFloat64()) },
			func() float64 { return float64(random.IntN(5) - 2) },
			func() float64 {
				return []float64{0, math.Copysign(0, -1), -5e-324, math.MaxFloat64}[random.IntN(4)]
			},
			func() float64 { return 7 },
		} {
			want := make([]int32, n)
			for i := range numbers {
				numbers[i], want[i] = draw(), int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int {
				return cmp.Compare(numbers[a], numbers[b])
			})
			if got := sortedOrder(numbers); !slices.Equal(got, want) {
				t.Errorf("kind %d, %d numbers: order differs from comparison sort", kind, n)
			}
		}
	}
}

// cutSearch finds the same cut as a search that compares floats.
func TestCutSearch_CountsTheCutsBelow(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for range 100 {
		cuts := make([]float64, random.IntN(maxBins))
		for i := range cuts {
			cuts[i] = random.NormFloat64() * math.Exp(50*random.NormFloat64())
		}
		slices.Sort(cuts)
		l := newCutSearch(cuts)
		for _, x := range append(slices.Clone(cuts), 0, math.Copysign(0, -1), random.NormFloat64(),
			-math.MaxFloat64, math.MaxFloat64) {
			if want, _ := slices.BinarySearch(cuts, x); int(l.find(x)) != want {
				t.Fatalf("find %g among %d cuts: got %d, want %d", x, len(cuts), l.find(x), want)
			}
		}
	}
}
